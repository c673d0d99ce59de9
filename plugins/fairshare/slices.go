package fairshare

import (
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/fairshare"
)

const gpu = cluster.DefaultDeviceResource

// mayKeepShares reports whether all queues of the branch may keep their share of the resource
// without a victim that is charged at least the least, which is 1 or more. For nvidia.com/gpu,
// queues that name slices in their quota, limits or weights are not tested: a victim that
// holds slices may be charged 0 of nvidia.com/gpu to such a queue, which then keeps its share.
func mayKeepShares(branch []*fairshare.Queue, resource string, least func(resource string) int64) bool {
	for _, q := range branch {
		sh := q.Share(resource)
		if sh == nil || resource == gpu && q.SliceTerms {
			continue
		}
		if beyond := q.Used.Of(resource) - sh.Share(); beyond <= 0 || beyond < least(resource) {
			return false
		}
	}
	return true
}

// leastCharge returns the least of the resource that a queue loses with a victim of the class
// that holds some of it.
func (p *plugin) leastCharge(class cluster.Class, resource string) int64 {
	if resource != gpu || !p.plain() {
		return 1
	}
	return max(1, p.view.Classes().Least(class))
}

// plain reports whether all devices are whole and count as nvidia.com/gpu, so that a task is
// charged for all devices that it holds.
func (p *plugin) plain() bool {
	return !slices.ContainsFunc(p.view.Kinds(), func(d cluster.Device) bool { return d.Resource != gpu || d.Profile != "" })
}
