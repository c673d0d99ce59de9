package cures

import (
	"fmt"
	"slices"
	"strings"
)

// groupings are ways in which pods name their group: the first part of the ID of the gang, the API
// version of the object that describes it ("" if there is none), and where pods name it.
var groupings = []struct{ source, version, section, key string }{
	{"kai", "scheduling.run.ai/v2alpha2", "annotations", "pod-group-name"},
	{"volcano", "scheduling.volcano.sh/v1beta1", "annotations", "scheduling.k8s.io/group-name"},
	{"coscheduling", "scheduling.x-k8s.io/v1alpha1", "labels", "scheduling.x-k8s.io/pod-group"},
	{"group", "", "labels", "berth.dev/group-name"},
}

// gang adds pods of one group.
func (g *generator) gang(name string) {
	how := groupings[g.IntN(len(groupings))]
	first := len(g.in.Objects)
	g.pod(name + "-0")
	model := g.in.Objects[first]
	meta := section(model, "metadata")
	field(meta, how.section)[how.key] = name
	size := 2 + g.IntN(3)
	least := 1 + g.IntN(size)
	if how.version == "" {
		field(meta, "labels")["berth.dev/group-min-member"] = fmt.Sprint(least)
	} else {
		spec := Object{"minMember": least}
		g.add(Object{"apiVersion": how.version, "kind": "PodGroup", "metadata": Object{"name": name, "namespace": meta["namespace"], "creationTimestamp": meta["creationTimestamp"]}, "spec": spec})
	}
	for i := 1; i < size; i++ {
		p := Input{Objects: []Object{model}}.clone().Objects[0]
		section(p, "metadata")["name"] = fmt.Sprintf("%s-%d", name, i)
		g.add(p)
	}
}

// members returns the indexes of the pods of the gang with the ID, and nil if it is no gang.
func (in Input) members(workload string) []int {
	parts := strings.Split(workload, "/")
	var out []int
	for _, how := range groupings {
		if len(parts) != 3 || how.source != parts[0] {
			continue
		}
		for i, o := range in.Objects {
			meta := section(o, "metadata")
			if o["kind"] == "Pod" && meta["namespace"] == parts[1] && section(meta, how.section)[how.key] == parts[2] {
				out = append(out, i)
			}
		}
	}
	return out
}

// isMember reports whether the object is a pod of a gang.
func isMember(o Object) bool {
	meta := section(o, "metadata")
	for _, how := range groupings {
		if o["kind"] == "Pod" && section(meta, how.section)[how.key] != nil {
			return true
		}
	}
	return false
}

// gangs returns the IDs of all gangs.
func (in Input) gangs() []string {
	var out []string
	for _, o := range in.Objects {
		meta := section(o, "metadata")
		for _, how := range groupings {
			if name := section(meta, how.section)[how.key]; o["kind"] == "Pod" && name != nil {
				if gang := fmt.Sprintf("%s/%v/%v", how.source, meta["namespace"], name); !slices.Contains(out, gang) {
					out = append(out, gang)
				}
			}
		}
	}
	return out
}

// removeGang removes the pods of the gang and the object that describes it.
func (in *Input) removeGang(gang string) {
	members := in.members(gang)
	var kept []Object
	for i, o := range in.Objects {
		if !slices.Contains(members, i) && id(o) != gang {
			kept = append(kept, o)
		}
	}
	in.Objects = kept
}

// gang adds changes of all pods of a gang, each made to all of them.
func (b *brute) gang(gang string, members []int) {
	if b.in.find(gang) >= 0 {
		b.add("--set", gang+".spec.minMember=1")
	}
	var each [][][]string // by member: its changes
	for _, i := range members {
		own := &brute{in: b.in}
		own.own(b.in.Objects[i])
		if section(section(b.in.Objects[i], "metadata"), "labels")["berth.dev/group-min-member"] != nil {
			own.set(b.in.Objects[i], "metadata.labels.berth.dev/group-min-member", `"1"`)
		}
		slices.SortFunc(own.out, func(x, y []string) int { // the members have the same fields
			return strings.Compare(fieldOf(x), fieldOf(y))
		})
		each = append(each, own.out)
	}
	for k := range each[0] {
		var all []string
		for _, changes := range each {
			if k < len(changes) {
				all = append(all, changes[k]...)
			}
		}
		if !strings.Contains(all[1], ".metadata.annotations=") { // it would leave the gang
			b.add(all...)
		}
	}
}

// fieldOf returns the field that a change sets, and its value.
func fieldOf(arguments []string) string {
	_, field, _ := strings.Cut(arguments[1], ".")
	return field
}
