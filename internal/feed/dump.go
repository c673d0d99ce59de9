package feed

import (
	"maps"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/field"
	"github.com/berth-project/berth/internal/phrase"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Settle returns the facts about all pods of a dump, in the order of their jobs, and notes about
// pods whose groups the dump does not describe.
func (f *Feed) Settle() ([]cluster.Change, []Note) {
	var out []cluster.Change
	var notes []Note
	f.settling = true
	f.sizes = map[groupKey]int{}
	for _, p := range f.pods {
		f.sizes[p.group()]++
	}
	assignShares(f)
	only := sliceOnly(f)
	for _, id := range slices.Sorted(maps.Keys(f.jobs)) {
		j := f.jobs[id]
		g := f.groups[j.group]
		var members []*pod
		for _, name := range slices.Sorted(maps.Keys(j.members)) {
			members = append(members, j.members[name])
		}
		out = append(out, f.settle(j, members...)...)
		common := len(j.commonAffinity())
		for _, p := range members {
			list := p.memberNotes(g, common, f.classes)
			if resource := p.plain.Resource; only[resource] && p.plain.Devices > 0 && p.ended == cluster.Pending && p.place.Node == "" {
				list = append(list, convert.Note{
					Severity: convert.Ignored, Path: field.Path{"spec", "containers"},
					Message: "with a request for " + resource + ", which some nodes offer by ResourceSlices only; berth places pods there nevertheless",
				})
			}
			for _, n := range list {
				notes = append(notes, Note{kindPod, p.name.Namespace, p.name.Name, n})
			}
		}
	}
	return out, notes
}

// sliceOnly returns the resources of devices that some nodes have by ResourceSlices, although neither a
// device plugin nor a DeviceClass offers them to pods that request the resource.
func sliceOnly(f *Feed) map[string]bool {
	out := map[string]bool{}
	for name, n := range f.nodes { // the order has no effect on the result
		devices, _ := f.inventory.Devices(name)
		for i := range devices {
			resource := devices[i].Resource
			offered := slices.ContainsFunc(n.Devices, func(d cluster.Device) bool {
				return d.Resource == resource || d.Resource == "" && n.DeviceResource == resource
			})
			if !offered && !f.inventory.Extends(resource) {
				out[resource] = true
			}
		}
	}
	return out
}

// memberNotes returns notes about a pod of a dump as a member of its job. The group is nil if the dump
// does not describe it; common is how many terms of affinity all members have.
func (p *pod) memberNotes(g *group, common int, classes map[string]int32) convert.Notes {
	if p.ended != cluster.Pending {
		return nil
	}
	var notes convert.Notes
	ignored := func(at, message, detail string) {
		notes = append(notes, convert.Note{Severity: convert.Ignored, Path: field.Path{at}, Message: message, Detail: detail})
	}
	if len(p.affinity) > common {
		ignored("spec", "with affinity to pods that not all pods of their group have, which berth does not read", "")
	}
	if p.queue != "" && p.job.said.queue != p.queue && p.job.said.unknownQueue != p.queue {
		ignored("metadata", "of groups whose pods name different queues; the first one that exists counts", p.queue)
	}
	if p.missing > 0 {
		counts := "each claim counts as one device"
		if p.uncounted {
			counts = "what they claim is not counted, because the node has no devices or the pods have others too"
		}
		ignored("spec", "on a node with resourceClaims that are not in the input; "+counts+"; dump resourceclaims.resource.k8s.io and resourceslices.resource.k8s.io too", "")
	}
	if p.member.single() || !p.member.object {
		return notes
	}
	switch group := p.member.source + " " + p.name.Namespace + "/" + p.member.name; {
	case g == nil && p.member.source == byJob:
		ignored("metadata", "of Jobs that are not in the input; each is placed on its own", group)
	case g == nil && p.member.min == 0:
		ignored("metadata", "in groups that the input does not describe; each group is taken for a gang of all its pods in the input", group)
	case g != nil && g.class != "" && g.priority == nil:
		if _, known := classes[g.class]; !known {
			ignored("metadata", "of groups with the priority class "+phrase.Quote(g.class)+", which is not in the input; the priority is that of the pods", group)
		}
	}
	return notes
}

// dumpNotes returns notes about a single pod of a dump.
func (p *pod) dumpNotes(o *corev1.Pod, profiles []string) convert.Notes {
	var notes convert.Notes
	name := o.Spec.SchedulerName
	others := name != "" && name != corev1.DefaultSchedulerName && name != "berth" && name != "berth-scheduler" && !slices.Contains(profiles, name)
	if others && p.ended == cluster.Pending && o.Spec.NodeName == "" {
		notes = append(notes, convert.Note{Severity: convert.Ignored, Path: field.Path{"spec", "schedulerName"}, Message: "with the schedulerName " + phrase.Quote(name) + "; berth places pods of every scheduler"})
	}
	return notes
}

// missingClaims returns how many claims of a running pod are not known.
func (d *dynamic) missingClaims(o *corev1.Pod) int {
	if o.Spec.NodeName == "" || endOf(o) != cluster.Pending {
		return 0
	}
	missing := map[string]bool{} // by the names of claims, or of entries whose claims have no name
	for i := range o.Spec.ResourceClaims {
		c := &o.Spec.ResourceClaims[i]
		name, none := "", false
		if c.ResourceClaimName != nil {
			name = *c.ResourceClaimName
		}
		for k := range o.Status.ResourceClaimStatuses {
			if s := &o.Status.ResourceClaimStatuses[k]; s.Name == c.Name && name == "" {
				if none = s.ResourceClaimName == nil; !none {
					name = *s.ResourceClaimName
				}
			}
		}
		switch {
		case none: // the template makes no claim
		case name == "":
			missing["entry "+c.Name] = true
		case d.claims[types.NamespacedName{Namespace: nameOf(&o.ObjectMeta).Namespace, Name: name}] == nil:
			missing[name] = true
		}
	}
	return len(missing)
}
