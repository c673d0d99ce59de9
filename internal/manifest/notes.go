package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/phrase"
)

// notes returns what a user should know about the objects, sorted.
func (b *Bundle) notes() []string {
	pods, nodes := tallies{}, tallies{}
	for _, o := range b.Pods {
		pods.add(convert.PodID(o), convert.PodNotes(o), convert.Ignored, convert.Inactive)
	}
	cells := map[string]bool{}
	for _, n := range b.CoreNodes {
		nodes.add(n.Name, convert.CoreNodeNotes(n), convert.Inactive)
		cells[n.Labels[v1alpha1.LabelCell]] = true
	}
	for _, n := range b.Nodes {
		cells[cmp.Or(n.Spec.Cell, n.Labels[v1alpha1.LabelCell])] = true
	}
	out := b.classNotes(pods.note(nodes.note(nil, "node"), "pod"))
	if skipped := b.skipped.text(); skipped != "" {
		out = append(out, "skipped, because berth does not read these kinds: "+skipped+"; it reads nodes, pods, disruption budgets, what describes groups of pods, and its own kinds")
	}
	out = b.unknown.note(append(out, (expander{b}).notes()...))
	there := slices.Sorted(maps.Keys(cells))
	for _, j := range b.Jobs {
		for _, c := range j.Spec.Cells {
			if !cells[c] {
				out = append(out, fmt.Sprintf("%s names the cell %s, which no node is in%s", convert.JobID(j), phrase.Quote(c), phrase.Suggestion(c, there)))
			}
		}
	}
	out = append(out, b.levelNotes()...)
	slices.Sort(out)
	return out
}

// classNotes adds notes about priority classes that pods name and that are not in the input.
func (b *Bundle) classNotes(out []string) []string {
	unknown := map[string]*tally{}
	env := &convert.Environment{PriorityClasses: b.PriorityClasses}
	for _, o := range b.Pods {
		if class := convert.UnknownPriorityClass(o, env); class != "" {
			if unknown[class] == nil {
				unknown[class] = &tally{}
			}
			unknown[class].add(convert.PodID(o))
		}
	}
	for _, class := range slices.Sorted(maps.Keys(unknown)) {
		out = unknown[class].note(out, "with priority 0, because the priority class "+phrase.Quote(class)+" is not in the input", "pod")
	}
	return out
}

// levelNotes returns notes about topology levels that no node has as a label. There are
// no domains of such a level.
func (b *Bundle) levelNotes() []string {
	var labels map[string]bool // of all nodes; nil until a job names a level
	var out []string
	noted := map[string]bool{}
	for _, j := range b.Jobs {
		for _, level := range levels(j) {
			if labels == nil {
				labels = b.nodeLabels()
			}
			if id := convert.JobID(j); !labels[level] && !noted[id+" "+level] {
				noted[id+" "+level] = true
				near := phrase.Suggestion(level, slices.Sorted(maps.Keys(labels)))
				out = append(out, fmt.Sprintf("%s names the topology level %s, a label that no node has%s", id, phrase.Quote(level), near))
			}
		}
	}
	return out
}

// levels returns the topology levels that the job names.
func levels(j *v1alpha1.Job) []string {
	var out []string
	add := func(t *v1alpha1.Topology) {
		if t != nil {
			out = append(out, t.Preferred...)
			if t.Required != "" {
				out = append(out, t.Required)
			}
		}
	}
	subgroups := slices.Clone(j.Spec.Subgroups)
	add(j.Spec.Topology)
	for _, a := range j.Spec.Alternatives {
		add(a.Topology)
		subgroups = append(subgroups, a.Subgroups...)
	}
	for _, g := range subgroups {
		add(g.Topology)
	}
	return out
}

func (b *Bundle) nodeLabels() map[string]bool {
	out := map[string]bool{}
	see := func(labels map[string]string) {
		for k := range labels {
			out[k] = true
		}
	}
	for _, n := range b.Nodes {
		see(n.Labels)
	}
	for _, n := range b.CoreNodes {
		see(n.Labels)
	}
	return out
}

// tally collects the names of objects for a note. The note shows how many there are and the
// first of them.
type tally []string

func (t *tally) add(name string) { *t = append(*t, name) }

func (t tally) note(notes []string, what, kind string) []string {
	if len(t) == 0 {
		return notes
	}
	const few = 3
	slices.Sort(t)
	names := strings.Join(t[:min(len(t), few)], ", ")
	if len(t) > few {
		names += ", …"
	}
	return append(notes, fmt.Sprintf("%s %s: %s", english.Count(len(t), kind), what, names))
}

// tallies are the names of objects of one kind by the messages of their notes.
type tallies map[string]*tally

// add adds the object to the tally of each of its notes of the severities.
func (t tallies) add(name string, notes convert.Notes, severities ...convert.Severity) {
	for _, n := range notes {
		if !slices.Contains(severities, n.Severity) {
			continue
		}
		if t[n.Message] == nil {
			t[n.Message] = &tally{}
		}
		shown := name
		if n.Detail != "" {
			shown += " (" + n.Detail + ")"
		}
		t[n.Message].add(shown)
	}
}

func (t tallies) note(notes []string, kind string) []string {
	for _, message := range slices.Sorted(maps.Keys(t)) {
		notes = t[message].note(notes, message, kind)
	}
	return notes
}

// LeftOutWorkloads returns why workloads that were read are not in State, by ID.
func (b *Bundle) LeftOutWorkloads() map[string]string {
	out := map[string]string{}
	for _, o := range b.Pods {
		if why := convert.WhyLeftOut(o); why != "" {
			out[convert.PodID(o)] = why
		}
	}
	maps.Copy(out, b.unusable)
	return out
}
