package feed

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/field"
	"github.com/berth-project/berth/internal/phrase"
	corev1 "k8s.io/api/core/v1"
)

// The ways in which pods are grouped. They are the first part of the IDs of jobs.
const (
	bySelf         = "pod" // the pod is a job of its own
	byPodGroup     = "podgroup"
	byBerth        = "group"
	byKAI          = "kai"
	byVolcano      = "volcano"
	byCoscheduling = "coscheduling"
	byKoordinator  = "koordinator"
	byJobSet       = "jobset"
	byLWS          = "lws"
	byTraining     = "training"
	byRay          = "raycluster"
	byJob          = "batchjob"
)

// membership is the group that a pod names.
type membership struct {
	source string
	name   string // of the group, in the namespace of the pod
	object bool   // an object of the API describes the group; without it the minimum is not known, unless min is set
	min    int    // the minimum that the pod states; 0: it states none
	// part is the name of the subgroup. If the object or the pod says so, parts are jobs of
	// their own.
	part  string
	apart bool
	index int
}

// single reports whether the pod is a job of its own.
func (m *membership) single() bool { return m.source == bySelf }

// rule reads one way of grouping. found is false if the pod is not grouped in this way.
type rule func(*reader) (m membership, found bool)

// rules are the ways of grouping, the first that applies counts: what a user or a scheduler
// states about the pod comes before its owner. Pods of Deployments, ReplicaSets,
// StatefulSets and DaemonSets are not gangs.
var rules = []rule{
	(*reader).upstream, (*reader).berth, (*reader).kai, (*reader).volcano, (*reader).coscheduling, (*reader).koordinator,
	(*reader).exclusiveJobSet, (*reader).jobSet, (*reader).leaderWorkerSet, (*reader).training, (*reader).ray, (*reader).job,
}

// reader reads labels and annotations of one pod and collects notes.
type reader struct {
	pod   *corev1.Pod
	notes *convert.Notes
}

// memberOf returns the group that the pod names.
func memberOf(o *corev1.Pod, notes *convert.Notes) membership {
	r := reader{o, notes}
	for _, rule := range rules {
		m, found := rule(&r)
		if found && !m.single() && !isGroupName(m) {
			r.invalid(field.Path{"metadata"}, "%s is not a valid name of a group", phrase.Quote(m.name))
			return alone(o)
		}
		if found {
			return m
		}
	}
	return alone(o)
}

// isGroupName reports whether the group can be the name of an object. A LeaderWorkerSet has several
// groups, which are numbered after a slash.
func isGroupName(m membership) bool {
	name := m.name
	if m.source == byLWS {
		set, group, _ := strings.Cut(name, "/")
		if _, err := strconv.ParseUint(group, 10, 32); err != nil {
			return false
		}
		name = set
	}
	return strings.IndexFunc(name, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_')
	}) < 0
}

// Grouped reports whether the pod names a group.
func Grouped(o *corev1.Pod) bool {
	var notes convert.Notes
	m := memberOf(o, &notes)
	return !m.single()
}

// alone returns the membership of a pod that is a job of its own.
func alone(o *corev1.Pod) membership { return membership{source: bySelf, name: o.Name, min: 1} }

func (r *reader) upstream() (membership, bool) {
	g := r.pod.Spec.SchedulingGroup
	if g == nil || g.PodGroupName == nil || *g.PodGroupName == "" {
		return membership{}, false
	}
	return membership{source: byPodGroup, name: *g.PodGroupName, object: true}, true
}

func (r *reader) berth() (membership, bool) {
	name, _ := r.labelOrAnnotation(LabelGroupName)
	if name == "" {
		return membership{}, false
	}
	m := membership{source: byBerth, name: name}
	text, at := r.labelOrAnnotation(LabelGroupMinMember)
	if m.min = r.count(text, at); m.min == 0 && text == "" {
		r.invalid(at, "the pod names the group %s and not its minimum; add %s", phrase.Quote(name), LabelGroupMinMember)
	}
	return m, true
}

func (r *reader) kai() (membership, bool) {
	name := r.pod.Annotations["pod-group-name"]
	return membership{source: byKAI, name: name, object: true, part: r.pod.Labels["kai.scheduler/subgroup-name"]}, name != ""
}

func (r *reader) volcano() (membership, bool) {
	a := r.pod.Annotations
	name := a["scheduling.k8s.io/group-name"]
	if name == "" {
		name = a["scheduling.volcano.sh/group-name"]
	}
	if name == "" {
		return membership{}, false
	}
	const minMember = "scheduling.volcano.sh/group-min-member"
	return membership{
		source: byVolcano, name: name, object: true, min: r.count(a[minMember], annotation(minMember)),
		part: a["volcano.sh/task-spec"], index: r.index(a["volcano.sh/task-index"]),
	}, true
}

// coscheduling reads the label of scheduler-plugins. Koordinator reads the same label, and
// an older one.
func (r *reader) coscheduling() (membership, bool) {
	name := r.pod.Labels["scheduling.x-k8s.io/pod-group"]
	if name == "" {
		name = r.pod.Labels["pod-group.scheduling.sigs.k8s.io/name"]
	}
	return membership{source: byCoscheduling, name: name, object: true}, name != ""
}

func (r *reader) koordinator() (membership, bool) {
	a := r.pod.Annotations
	name := a["gang.scheduling.koordinator.sh/name"]
	if name == "" {
		return membership{}, false
	}
	const minAvailable = "gang.scheduling.koordinator.sh/min-available"
	m := membership{source: byKoordinator, name: name, min: r.count(a[minAvailable], annotation(minAvailable))}
	if a[minAvailable] == "" {
		r.invalid(annotation(minAvailable), "the pod names the gang %s and not its minimum; add %s", phrase.Quote(name), minAvailable)
	}
	return m, true
}

// exclusiveJobSet makes each pod of a JobSet with exclusive placement a job of its own. The
// webhook of JobSet admits the other pods of a Job only after the first is on a node, so that a
// gang would wait for pods that do not exist. With the node-selector strategy, all pods are
// created at the same time.
func (r *reader) exclusiveJobSet() (membership, bool) {
	const prefix = "alpha.jobset.sigs.k8s.io/"
	a := r.pod.Annotations
	return alone(r.pod), a[prefix+"exclusive-topology"] != "" && a[prefix+"node-selector"] == ""
}

func (r *reader) jobSet() (membership, bool) {
	l := r.pod.Labels
	name := l["jobset.sigs.k8s.io/jobset-name"]
	return membership{
		source: byJobSet, name: name, object: true, part: l["jobset.sigs.k8s.io/replicatedjob-name"], index: r.index(l["jobset.sigs.k8s.io/job-index"]),
	}, name != ""
}

// The parts of a group of a LeaderWorkerSet.
const (
	leader = "leader"
	worker = "worker"
)

// leaderWorkerSet makes each group of a LeaderWorkerSet a job: the leader and its workers. The
// size of the group, and whether the workers are created only after the leader is ready
// (startupPolicy), are known from the object. With exclusive placement, the workers are created
// only after the leader is on a node; the pods say so.
func (r *reader) leaderWorkerSet() (membership, bool) {
	const prefix = "leaderworkerset.sigs.k8s.io/"
	l := r.pod.Labels
	name, group := l[prefix+"name"], l[prefix+"group-index"]
	if name == "" || group == "" {
		return membership{}, false
	}
	_, exclusive := r.pod.Annotations[prefix+"exclusive-topology"]
	m := membership{source: byLWS, name: name + "/" + group, object: true, part: worker, apart: exclusive, index: r.index(l[prefix+"worker-index"])}
	if m.index == 0 {
		m.part = leader
	}
	return m, true
}

func (r *reader) training() (membership, bool) {
	const prefix = "training.kubeflow.org/"
	l := r.pod.Labels
	name := l[prefix+"job-name"]
	return membership{source: byTraining, name: name, object: true, part: l[prefix+"replica-type"], index: r.index(l[prefix+"replica-index"])}, name != ""
}

func (r *reader) ray() (membership, bool) {
	name := r.pod.Labels["ray.io/cluster"]
	return membership{source: byRay, name: name, object: true, part: r.pod.Labels["ray.io/group"]}, name != ""
}

// job groups the pods of an Indexed Job. Only these can be a gang; see PutJob. Pods of
// other Jobs are independent of each other.
func (r *reader) job() (membership, bool) {
	index, indexed := r.pod.Annotations["batch.kubernetes.io/job-completion-index"]
	if !indexed {
		return membership{}, false
	}
	for _, owner := range r.pod.OwnerReferences {
		if owner.Controller != nil && *owner.Controller && owner.Kind == "Job" {
			return membership{source: byJob, name: owner.Name, object: true, index: r.index(index)}, true
		}
	}
	return membership{}, false
}

// labelOrAnnotation returns the value of the key, and its path. The label takes
// precedence.
func (r *reader) labelOrAnnotation(key string) (string, field.Path) {
	if v := r.pod.Labels[key]; v != "" {
		return v, field.Path{"metadata", "labels", key}
	}
	return r.pod.Annotations[key], annotation(key)
}

func annotation(key string) field.Path { return field.Path{"metadata", "annotations", key} }

// count converts a number of pods. It returns 0 if the text is empty, and 0 with a note if
// it is not valid.
func (r *reader) count(text string, at field.Path) int {
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > convert.MaxTasks {
		r.invalid(at, "want a number of pods from 1 to %d, have %s", convert.MaxTasks, phrase.Quote(text))
		return 0
	}
	return n
}

// index converts the index of a pod in its group, which orders tasks. It returns 0 if the
// text is no index.
func (r *reader) index(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > convert.MaxTasks {
		return 0
	}
	return n
}

func (r *reader) invalid(at field.Path, format string, args ...any) {
	*r.notes = append(*r.notes, convert.Note{Severity: convert.Invalid, Path: at, Message: fmt.Sprintf(format, args...)})
}
