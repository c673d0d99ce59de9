package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/numeral"
	"github.com/berth-project/berth/internal/printable"
	corev1 "k8s.io/api/core/v1"
)

// notes are what a person should know about how the input was read.
func (b *Bundle) notes() []string {
	var gated, selectors tally
	unreadable := map[string]*tally{}
	for _, o := range b.Pods {
		if ended(o) || o.Spec.NodeName != "" {
			continue
		}
		if held(o) {
			gated.add(podID(o))
			continue
		}
		for _, what := range unread(o) {
			if unreadable[what] == nil {
				unreadable[what] = &tally{}
			}
			unreadable[what].add(podID(o))
		}
		if selectsByLabel(o) {
			selectors.add(podID(o))
		}
	}
	var down tally
	cells := map[string]bool{}
	for _, n := range b.CoreNodes {
		if !ready(n) {
			down.add(n.Name)
		}
		cells[n.Labels[v1alpha1.LabelCell]] = true
	}
	for _, n := range b.Nodes {
		cells[cmp.Or(n.Spec.Cell, n.Labels[v1alpha1.LabelCell])] = true
	}
	var out []string
	out = gated.note(out, "held back by scheduling gates, not scheduled", "pod")
	out = down.note(out, "not ready, taking nothing new", "node")
	out = selectors.note(out, "with a namespace selector by label; only the names of namespaces are known", "pod")
	for _, what := range slices.Sorted(maps.Keys(unreadable)) {
		out = unreadable[what].note(out, "with "+what+", which berth does not read", "pod")
	}
	there := slices.Sorted(maps.Keys(cells))
	for _, j := range b.Jobs {
		for _, c := range j.Spec.Cells {
			if !cells[c] {
				out = append(out, fmt.Sprintf("%s names the cell %s, which no node is in%s", jobID(j), quote(c), suggestion(c, there)))
			}
		}
	}
	out = append(out, b.levelNotes()...)
	slices.Sort(out)
	return out
}

// levelNotes tell of topology levels that no node has: with them nothing is near anything.
func (b *Bundle) levelNotes() []string {
	var labels map[string]bool // of any node; made when first asked for
	var out []string
	said := map[string]bool{}
	for _, j := range b.Jobs {
		for _, level := range levels(j) {
			if labels == nil {
				labels = b.nodeLabels()
			}
			if id := jobID(j); !labels[level] && !said[id+" "+level] {
				said[id+" "+level] = true
				near := suggestion(level, slices.Sorted(maps.Keys(labels)))
				out = append(out, fmt.Sprintf("%s names the topology level %s, a label that no node has%s", id, quote(level), near))
			}
		}
	}
	return out
}

// levels are all that the job names.
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
	parts := slices.Clone(j.Spec.Subgroups)
	add(j.Spec.Topology)
	for _, a := range j.Spec.Alternatives {
		add(a.Topology)
		parts = append(parts, a.Subgroups...)
	}
	for _, g := range parts {
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

// tally collects names for a note and shows the first few.
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
	return append(notes, fmt.Sprintf("%s %s: %s", numeral.Count(len(t), kind), what, names))
}

// LeftOut are the workloads that were read and are not in the books, by ID, and why.
func (b *Bundle) LeftOut() map[string]string {
	out := map[string]string{}
	for _, o := range b.Pods {
		switch {
		case o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed:
			out[podID(o)] = "it has ended: its phase is " + printable.Text(string(o.Status.Phase))
		case ended(o):
			out[podID(o)] = "it was deleted before it got a node"
		case held(o):
			out[podID(o)] = "it is held back by the scheduling gate " + quote(o.Spec.SchedulingGates[0].Name) +
				"; whoever set the gate has to remove it before anybody schedules the pod"
		}
	}
	return out
}
