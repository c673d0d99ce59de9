package explain

import (
	"strings"
	"unicode"

	"github.com/berth-project/berth/engine"
)

// phrases put reasons into words; {subject}, {want} and {have} are filled in.
// A reason that is not listed, such as one of a plugin that lives elsewhere, is
// spelled out of its own name: reasons are named so that this reads well.
var phrases = map[engine.Reason]string{
	"LabelMismatch":                "label {subject} missing",
	"CellMismatch":                 "not in cell {subject}",
	"GPUNotSelected":               "none of the selected devices is there",
	"SelectedGPUMissing":           "selected devices missing or lost: {subject}; want {want}, {have} there",
	"TooFewSelectedGPUs":           "fewer than {want} selected devices",
	"ModelLabelMismatch":           "label {subject} missing",
	"NodeNotReady":                 "not ready: {subject}",
	"RejectedByNode":               "turned down a task like it a short while ago",
	"BackendNotSupported":          "{subject}",
	"LocalPathMissing":             "no {subject} there",
	"LocalPathNotReady":            "not ready to be loaded: {subject}",
	"NodeUnschedulable":            "closed to new tasks",
	"TaintNotTolerated":            "taint {subject} not tolerated",
	"NoDevices":                    "no devices",
	"DeviceLabelsInvalid":          "device labels cannot be believed: {subject}",
	"NoSuchPartition":              "no slice of profile {subject}",
	"NoSuchDeviceResource":         "no device called {subject}",
	"ProductMismatch":              "no device of {subject}",
	"ResourceTooSmall":             "less {subject} than {want}",
	"InsufficientResource":         "less free {subject} than {want}",
	"TooFewDevices":                "fewer than {want} devices",
	"InsufficientDevices":          "fewer than {want} free devices",
	"GPUMemoryTooSmall":            "devices smaller than {want}",
	"GPUMemoryInUse":               "less than {want} free on enough devices",
	"InsufficientDeviceShare":      "less than {want} free on enough devices",
	"NodeInUse":                    "fewer than {want} idle devices, and it takes the whole node",
	"SpotNotAllowed":               "a spot instance, and the task is not preemptible",
	"AffinityMismatch":             "required affinity to {subject} not met",
	"DomainUnknown":                "label {subject}, which names the domain, missing",
	"JobAffinityUnmet":             "no job near it that matches {subject}",
	"JobAntiAffinity":              "too near to jobs that match {subject}",
	"QueueForbidsResource":         "{subject} is not theirs to use",
	"QueueLimitTooSmall":           "{subject}: want {want}, the limit is {have}",
	"QueueLimitReached":            "{subject}: want {want}, {have} left of the limit",
	"QueueQuotaTooSmall":           "{subject}: not preemptible, want {want}, the quota is {have}",
	"QueueQuotaReached":            "{subject}: not preemptible, want {want}, {have} left of the quota",
	"NobodyConsents":               "no plugin says that it may go",
	"VictimInSameQueue":            "in the same queue",
	"VictimGuaranteed":             "its Guaranteed queue would fall below its quota",
	"VictimOfStrongerTier":         "of a stronger tier",
	"QueueBeyondItsShare":          "the queue that asks would be above its own fair share",
	"VictimQueueWithinItsShare":    "its queue would fall below its fair share",
	"VictimNotLower":               "of no lower priority",
	"VictimTierNotWeaker":          "of no weaker tier",
	"VictimWithinItsGuarantee":     "its Guaranteed queue would fall below its quota",
	"Consolidated":                 "moved, so that what it leaves is in one piece",
	"Reclaimed":                    "its queue was above its fair share",
	"Preempted":                    "the other one matters more",
	"GangBelowMinimum":             "it ran below its minimum for too long",
	"NoNodeSupportsClass":          "does not support {subject}",
	"NodesSupportButContended":     "fewer than {want} free for {subject}",
	"ClassConflictsWithDaemonMode": "its share mode is exclusive",
	"ClassConflictsWithResourceId": "{subject} contradicts the devices asked for",
	"ReservedForDevices":           "free {subject} is kept for those who use its devices",
	"NoSuitableGroup":              "no group of nodes would do",
	"GroupGone":                    "its group is gone",
	"ScaledDown":                   "its set has enough replicas without it",
	"NoDomainFits":                 "no domain that it must be in has room for its minimum",
	"GroupInUse":                   "the group would do once enough of its nodes are free",
	"TasksFailed":                  "too many of its tasks failed",
	"StillLeaving":                 "tasks of its own have not left yet",
	"NoNodes":                      "there is no node at all",
	"GroupTooSmall":                "too few nodes, want {want}, have {have}",
	"ReplicaTooLarge":              "one replica wants {want}, its nodes have {have}",
	"VictimTooYoung":               "has not run for the minimum time of its queue",
	"VictimInBudget":               "a disruption budget keeps it",
	"DeviceMemoryUnknown":          "the memory of its devices is not known",
	"DeviceMemoryTooSmall":         "its devices give less than {want}",
	"DeviceMemoryInUse":            "its devices have less than {want} free",
	"GroupMemoryTooSmall":          "all replicas want {want}, the group has {have}",
}

// fewerThanOne says none.
var fewerThanOne = strings.NewReplacer(
	"fewer than 1 devices", "no such device",
	"fewer than 1 selected devices", "no selected device",
	"fewer than 1 free devices", "no free device",
	"fewer than 1 idle devices", "no idle device",
	"fewer than 1 free for", "nothing free for",
)

// sums are phrases for memory that so many devices give together, who are then the subject.
var sums = map[engine.Reason]string{
	"GPUMemoryTooSmall": "{subject} give less than {want}",
	"GPUMemoryInUse":    "{subject} have less than {want} free",
}

// words says what a rejection means; misses, where given, are all those like it.
func words(r *engine.Rejection, misses []*engine.Miss) string {
	subject := r.Subject
	p, known := phrases[r.Reason]
	if sum, ok := sums[r.Reason]; ok && subject != "" {
		p = sum
	} else if s := subjects(misses); s != "" {
		subject = s
	}
	want, have := pair(r.Want, r.Have)
	if known {
		return fewerThanOne.Replace(strings.NewReplacer("{subject}", subject, "{want}", want, "{have}", have).Replace(p))
	}
	text := spell(string(r.Reason))
	if subject != "" {
		text += " " + subject
	}
	if want != "" {
		text += ", want " + want
		if have != "" && misses == nil {
			text += ", have " + have // otherwise the example says it
		}
	}
	return text
}

// example names the nearest miss and what it has, where the phrase does not say it.
func example(misses []*engine.Miss) string {
	if len(misses) == 0 {
		return ""
	}
	best := misses[0]
	_, have := pair(best.Rejection.Want, best.Rejection.Have)
	phrase, known := phrases[best.Rejection.Reason]
	if have == "" || known && (strings.Contains(phrase, "{have}") || !strings.Contains(phrase, "{want}")) {
		return ""
	}
	if len(misses) == 1 {
		return "(" + best.Node + " has " + have + ")"
	}
	return "(best: " + best.Node + " has " + have + ")"
}

// spell turns GPUMemoryInUse into "GPU memory in use".
func spell(name string) string {
	var out strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		upper := unicode.IsUpper(r)
		// A word begins at a capital after a small letter, and at the last capital of a run that a small letter follows.
		starts := i > 0 && upper && (!unicode.IsUpper(runes[i-1]) || (i+1 < len(runes) && unicode.IsLower(runes[i+1])))
		if starts {
			out.WriteByte(' ')
		}
		acronym := i+1 < len(runes) && unicode.IsUpper(runes[i+1]) || i > 0 && unicode.IsUpper(runes[i-1]) && !starts
		if upper && !acronym {
			r = unicode.ToLower(r)
		}
		out.WriteRune(r)
	}
	return out.String()
}
