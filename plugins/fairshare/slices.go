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
// queues can hold. Not offering them would be worse: quotas that include them would not be
// covered, and tasks within their quota would be evicted.

const gpu = cluster.DefaultDeviceResource

// account is a slice profile that some queue names.
type account struct {
	name     string
	fraction int64 // of a GPU, in thousandths
}

type accounts []account

// accountsOf returns the slice profiles that queues name, sorted by name.
func accountsOf(s cluster.View) accounts {
	var names []string
	for _, q := range s.Queues() {
		names = append(names, profiles(q)...)
	}
	slices.Sort(names)
	var out accounts
	for _, name := range slices.Compact(names) {
		if fraction := s.Fraction(name); fraction > 0 {
			out = append(out, account{name, int64(fraction)})
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

func (a account) of(slices int64) int64 {
	return cluster.MulDiv(slices, a.fraction, int64(cluster.Whole))
}

// rises returns what an amount of the child, such as its request, is in the parent. If only
// one of the two names a slice profile, its slices count as a fraction of nvidia.com/gpu in
// the other one only.
func (l accounts) rises(child *Queue, resource string, amount func(resource string) int64) int64 {
	v := amount(resource)
	if resource != gpu {
		return v
	}
	for _, a := range l {
		switch here, above := child.Names(a.name), child.Parent.Names(a.name); {
		case here && !above:
			v = plus(v, a.of(amount(a.name)))
		case above && !here:
			v = max(0, v-a.of(amount(a.name)))
		}
	}
	return v
}

// differ reports whether slices of the resource count as a fraction of nvidia.com/gpu in
// exactly one of the queue and its parent.
func (l accounts) differ(q *Queue, resource string) bool {
	return l.has(resource) && q.Names(resource) != q.Parent.Names(resource)
}

func (l accounts) has(resource string) bool {
	return slices.ContainsFunc(l, func(a account) bool { return a.name == resource })
}

// falls returns what the children divide of their parent's share of the resource. For
// nvidia.com/gpu it includes slices that the parent names and some child does not.
func (l accounts) falls(parent *Queue, resource string, share func(resource string) int64) int64 {
	v := share(resource)
	if resource != gpu {
		return v
	}
	for _, a := range l {
		if parent.Names(a.name) && slices.ContainsFunc(parent.Children, func(c *Queue) bool { return !c.Names(a.name) }) {
			v = plus(v, a.of(share(a.name)))
		}
	}
	return v
}

// ofGPU returns what a request for slices counts as nvidia.com/gpu in the queue.
func ofGPU(ask cluster.DeviceAsk, q *cluster.Queue) int64 {
	if ask.OfGPU == 0 || q == nil || q.Names(ask.Name) {
		return 0
	}
	return ask.OfGPU
}

// mayBeAbove reports whether all queues of the branch may keep their share of the resource
// without a victim that holds at least the least, which is 1 or more. A queue that names
// slices may lose nothing of nvidia.com/gpu.
func mayBeAbove(branch []*Queue, resource string, least func(resource string) int64) bool {
	for _, q := range branch {
		sh := q.share(resource)
		if sh == nil || resource == gpu && q.slices {
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

// rise computes the request of a queue from those of its children.
func (k *kept) rise(q *Queue, name string) {
	v, takes := int64(0), int64(0)
	for _, c := range q.Children {
		v = plus(v, k.accounts.rises(c, name, func(of string) int64 { return c.part(of).within() }))
		takes = plus(takes, k.accounts.rises(c, name, func(of string) int64 { return c.most(c.part(of)) }))
	}
	k.request(q, name, v, takes)
}

// part returns the queue's share of the resource, or an empty share if no queue requests the resource.
func (q *Queue) part(name string) *Share {
	if sh := q.parts[name]; sh != nil {
		return sh
	}
	return &Share{Resource: name, Limit: -1, Quota: -1}
}

// total returns what the siblings divide.
func (k *kept) total(d *division) int64 {
	if d.parent == nil {
		return k.Total.Of(d.resource)
	}
	return k.accounts.falls(d.parent, d.resource, func(of string) int64 { return d.parent.part(of).Share() })
}
