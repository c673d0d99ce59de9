package feed

import (
	"maps"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/field"
	"github.com/berth-project/berth/internal/phrase"
)

// kai reads a PodGroup of scheduling.run.ai/v2alpha2.
func (x *object) kai() group {
	spec := x.at("spec")
	g := group{queue: spec.text("queue"), class: spec.text("priorityClassName")}
	switch text := spec.text("preemptibility"); text {
	case "":
	case "preemptible", "non-preemptible":
		is := text == "preemptible"
		g.preemptible = &is
	default:
		x.invalid([]string{"spec", "preemptibility"}, "want preemptible or non-preemptible, have %s", phrase.Quote(text))
	}
	g.topology = spec.kaiTopology()
	g.subgroups = spec.kaiSubgroups()
	g.minSubgroups = int(spec.number(0, "minSubGroup"))
	inside := 0
	for _, s := range g.subgroups {
		if s.Parent == 0 {
			inside++
		}
	}
	if g.minSubgroups < 0 || g.minSubgroups > inside {
		x.invalid([]string{"spec", "minSubGroup"}, "want at most the %d subgroups that there are, have %d", inside, g.minSubgroups)
	}
	otherwise := int64(1) // a group with minSubGroup has no minimum of its own
	g.min = checkedMin(spec.number(otherwise, "minMember"), field.Path{"spec", "minMember"}, x.notes)
	return g
}

func (x *object) kaiTopology() cluster.Topology {
	t := x.at("topologyConstraint")
	out := cluster.Topology{Required: t.text("requiredTopologyLevel")}
	if level := t.text("preferredTopologyLevel"); level != "" {
		out.Preferred = []string{level}
	}
	return out
}

// kaiSubgroups reads the subgroups and orders them so that each follows its parent, as
// cluster.Subgroup requires. Subgroups of one parent stay in the order of the object.
func (x *object) kaiSubgroups() []cluster.Subgroup {
	children := map[string][]object{}
	list := x.objects("subGroups")
	for _, s := range list {
		children[s.text("parent")] = append(children[s.text("parent")], s)
	}
	var out []cluster.Subgroup
	visited := map[string]bool{}
	var visit func(parent string, index int)
	visit = func(parent string, index int) {
		for _, s := range children[parent] {
			out = append(out, cluster.Subgroup{
				Name: s.text("name"), Min: int(s.number(0, "minMember")), Parent: index,
				MinSubgroups: int(s.number(0, "minSubGroup")), Topology: s.kaiTopology(),
			})
			if name := s.text("name"); name != "" && !visited[name] {
				visited[name] = true
				visit(name, len(out))
			}
		}
	}
	visit("", 0)
	x.checkSubgroups(list, out, children)
	return out
}

// checkSubgroups notes subgroups that State does not accept.
func (x *object) checkSubgroups(list []object, out []cluster.Subgroup, children map[string][]object) {
	at := []string{"spec", "subGroups"}
	if len(out) != len(list) {
		x.invalid(at, "the parents of some of the %d subgroups are missing, or form a cycle", len(list))
	}
	names := map[string]bool{}
	for _, s := range out {
		inside := len(children[s.Name])
		switch {
		case s.Name == "" || names[s.Name]:
			x.invalid(at, "subgroup %s has no name, or is listed twice", phrase.Quote(s.Name))
		case s.Min < 0 || s.Min > convert.MaxTasks:
			x.invalid(at, "the minimum of subgroup %s is %d; want from 0 to %d", phrase.Quote(s.Name), s.Min, convert.MaxTasks)
		case s.MinSubgroups < 0 || s.MinSubgroups > inside:
			x.invalid(at, "subgroup %s needs %d of the %d subgroups in it", phrase.Quote(s.Name), s.MinSubgroups, inside)
		}
		names[s.Name] = true
	}
	if len(out) > maxSubgroups {
		x.invalid(at, "%d subgroups are more than %d", len(out), maxSubgroups)
	}
}

// maxSubgroups is the largest number of subgroups that State accepts in any form of a job.
const maxSubgroups = 1000

// volcano reads a PodGroup of scheduling.volcano.sh/v1beta1. minTaskMember has minima of
// pods by the annotation volcano.sh/task-spec. As in Volcano, they do not count if the group needs
// fewer pods than their sum: the controller of jobs sets them to the number of replicas.
func (x *object) volcano() group {
	spec := x.at("spec")
	x.unread("spec", "networkTopology")
	x.unread("spec", "subGroupPolicy")
	g := group{queue: spec.text("queue"), class: spec.text("priorityClassName")}
	least := spec.number(1, "minMember")
	if least == 0 {
		least = 1 // each pod is placed on its own
	}
	g.min = checkedMin(least, field.Path{"spec", "minMember"}, x.notes)
	tasks, sum := spec.at("minTaskMember"), 0
	for _, name := range slices.Sorted(maps.Keys(tasks.fields)) {
		least := tasks.number(0, name)
		if least < 0 || least > convert.MaxTasks {
			x.invalid([]string{"spec", "minTaskMember", name}, "want from 0 to %d, have %d", convert.MaxTasks, least)
		}
		g.subgroups = append(g.subgroups, cluster.Subgroup{Name: name, Min: int(least)})
		sum += int(least)
	}
	if sum > g.min {
		g.subgroups = nil
	}
	return g
}

// coscheduling reads a PodGroup of scheduling.x-k8s.io/v1alpha1.
func (x *object) coscheduling() group {
	spec := x.at("spec")
	return group{min: checkedMin(spec.number(1, "minMember"), field.Path{"spec", "minMember"}, x.notes)}
}
