package fairshare

import (
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// In a queue that does not name a slice profile in its quota, limits or weights, MIG slices
// count as a fraction of nvidia.com/gpu, and nodes offer them as such. If some queue names a
// profile, all queues also divide its slices under their own name, as they do with
// products. The slices are then offered under both names, because it is not known which
// queues will hold them. The shares of nvidia.com/gpu may then add up to more than the other
// queues can hold. If the slices were offered under their own name only, quotas of nvidia.com/gpu
// that include slices would not be covered, and tasks within their quota would be evicted.

const gpu = cluster.DefaultDeviceResource

// sliceProfile is a slice profile that some queue names.
type sliceProfile struct {
	name     string
	fraction int64 // of a GPU, in thousandths
}

type sliceProfiles []sliceProfile

// sliceProfilesOf returns the slice profiles that queues name, sorted by name.
func sliceProfilesOf(s cluster.View) sliceProfiles {
	var names []string
	for _, q := range s.Queues() {
		names = append(names, profiles(q)...)
	}
	slices.Sort(names)
	var out sliceProfiles
	for _, name := range slices.Compact(names) {
		if fraction := s.Fraction(name); fraction > 0 {
			out = append(out, sliceProfile{name, int64(fraction)})
		}
	}
	return out
}

// profiles returns the slice profiles that the queue names.
func profiles(q *cluster.Queue) (out []string) {
	for _, list := range []cluster.Resources{q.Quota, q.Limits, q.OverQuotaWeight} {
		for _, a := range list {
			if strings.HasPrefix(a.Name, cluster.PartitionResource) {
				out = append(out, a.Name)
			}
		}
	}
	return out
}

func (a sliceProfile) of(slices int64) int64 {
	return cluster.MulDiv(slices, a.fraction, int64(cluster.Whole))
}

// inParent returns what an amount of the child, such as its request, is in the parent. If only
// one of the two names a slice profile, its slices count as a fraction of nvidia.com/gpu in
// the other one only.
func (l sliceProfiles) inParent(child *Queue, resource string, amount func(resource string) int64) int64 {
	v := amount(resource)
	if resource != gpu {
		return v
	}
	for _, a := range l {
		switch here, above := child.Names(a.name), child.Parent.Names(a.name); {
		case here && !above:
			v = Add(v, a.of(amount(a.name)))
		case above && !here:
			v = max(0, v-a.of(amount(a.name)))
		}
	}
	return v
}

// differs reports whether slices of the resource count as a fraction of nvidia.com/gpu in
// exactly one of the queue and its parent.
func (l sliceProfiles) differs(q *Queue, resource string) bool {
	return l.has(resource) && q.Names(resource) != q.Parent.Names(resource)
}

func (l sliceProfiles) has(resource string) bool {
	return slices.ContainsFunc(l, func(a sliceProfile) bool { return a.name == resource })
}

// forChildren returns what the children divide of their parent's share of the resource. For
// nvidia.com/gpu it includes slices that the parent names and some child does not.
func (l sliceProfiles) forChildren(parent *Queue, resource string, share func(resource string) int64) int64 {
	v := share(resource)
	if resource != gpu {
		return v
	}
	for _, a := range l {
		if parent.Names(a.name) && slices.ContainsFunc(parent.Children, func(c *Queue) bool { return !c.Names(a.name) }) {
			v = Add(v, a.of(share(a.name)))
		}
	}
	return v
}

// ofGPU returns what a request for slices counts as nvidia.com/gpu in the queue.
func ofGPU(ask cluster.DeviceEstimate, q *cluster.Queue) int64 {
	if ask.OfGPU == 0 || q == nil || q.Names(ask.Name) {
		return 0
	}
	return ask.OfGPU
}
