// Package fairshare computes the fair shares of queues: it divides what the cluster has
// among them by quota, priority, weight and, optionally, past use.
//
// Shares computes all shares of a State. A Keeper keeps them up to date from session to
// session, with the same result. The package only computes shares; the plugin FairShare
// decides by them which queue is next and what is reclaimed.
package fairshare

import (
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// Tree holds the queues with their shares. It is read-only for callers.
type Tree struct {
	Total cluster.Resources // what is divided
	Roots []*Queue          // by name

	ByName map[string]*Queue
	BySlot []*Queue // by Slot of the queue

	decay Decay

	pastUse pastUse
}

// Queue is a queue with its shares.
type Queue struct {
	*cluster.Queue
	Parent     *Queue
	Children   []*Queue // by name
	Branch     []*Queue // the queues from the top down to this one
	SliceTerms bool     // it names MIG slices in its quota, limits or weights
	Shares     []Share  // sorted by resource; only resources with a request or a quota above 0

	past []sum // past use, by position of the resource, if past use counts

	// The following fields are used if the tree is kept from session to session.
	all   map[string]*Share // shares of all resources that are divided
	index int               // index among its siblings

	ageRank int
}

// Share is what one queue has of one resource, with the figures that it is computed from.
type Share struct {
	Resource string
	Quota    int64 // its own, or the sum of those below it; -1: none
	Limit    int64 // -1: none
	Request  int64 // what its tasks hold and pending tasks request, within the limits of the queues below
	// Takes is the part of the request that can be given. For a leaf it is the whole request.
	// For any other queue it is the sum of what each child can take: the child's own Takes,
	// but no more than the child's limit and, if the child's weight is 0, than its quota.
	Takes int64
	Allotment
	Past *Past // nil if past use changed nothing
}

// newTree returns the tree of queues without shares.
func newTree(s cluster.View) *Tree {
	queues := s.Queues()
	t := &Tree{ByName: make(map[string]*Queue, len(queues)), BySlot: make([]*Queue, len(queues))}
	for _, q := range queues {
		node := &Queue{Queue: q, SliceTerms: len(profiles(q)) > 0}
		t.ByName[q.Name], t.BySlot[q.Slot()] = node, node
	}
	for _, q := range queues {
		node := t.BySlot[q.Slot()]
		if above := s.Parent(q); above != nil { // without its parent, a queue is at the top
			node.Parent = t.BySlot[above.Slot()]
		}
		if node.Parent == nil {
			t.Roots = append(t.Roots, node)
		} else {
			node.Parent.Children = append(node.Parent.Children, node)
		}
	}
	for _, q := range t.BySlot {
		depth := 0
		for p := q; p != nil; p = p.Parent {
			depth++
		}
		q.Branch = make([]*Queue, depth)
		for p := q; p != nil; p = p.Parent {
			depth--
			q.Branch[depth] = p
		}
	}
	return t
}

// Shares divides the total among all queues of the State, from the top down: the children of
// a queue divide what the queue gets.
func Shares(s cluster.View, total cluster.Resources, settings Settings) *Tree {
	t := newTree(s)
	t.Total, t.decay = total, settings.Decay
	names := map[string]bool{}
	for _, q := range t.BySlot {
		for _, list := range []cluster.Resources{q.Quota, q.Used} {
			for _, a := range list {
				names[a.Name] = true
			}
		}
	}
	divided := settings.Divided(s)
	t.pastUse = newPastUse(divided)
	if t.decay.counts() {
		t.addUpPastUse(s)
	}
	asks := pendingRequests(s)
	for _, list := range asks {
		for name := range list {
			names[name] = true
		}
	}
	g := inputs{asks, sliceProfilesOf(s), map[string]map[*Queue]*Share{}}
	work := func(name string) {
		if !divided[name] {
			return
		}
		g.shares[name] = map[*Queue]*Share{}
		for _, root := range t.Roots {
			g.addUp(root, name)
		}
		t.divide(total.Of(name), name, t.Roots, &g)
	}
	for _, a := range g.sliceProfiles { // before nvidia.com/gpu, of which slices are fractions
		if names[a.name] {
			names[gpu] = true
			work(a.name)
			delete(names, a.name)
		}
	}
	for name := range names {
		work(name)
	}
	for _, q := range t.ByName {
		slices.SortFunc(q.Shares, func(a, b Share) int { return strings.Compare(a.Resource, b.Resource) })
	}
	return t
}

// inputs holds what shares are computed from, and the shares by resource.
type inputs struct {
	asks          map[string]map[string]int64
	sliceProfiles sliceProfiles
	shares        map[string]map[*Queue]*Share
}

// addUp computes quota and request of the queue from those of the queues below it.
func (g *inputs) addUp(q *Queue, name string) *Share {
	sh := &Share{Resource: name, Limit: bound(q.Limits, name), Quota: bound(q.Quota, name)}
	g.shares[name][q] = sh
	declared := sh.Quota >= 0
	if q.Leaf() {
		sh.Request = Add(q.Used.Of(name), g.asks[q.Name][name])
		sh.Takes = sh.Request
		return sh
	}
	for _, c := range q.Children {
		if below := g.addUp(c, name); !declared && below.Quota >= 0 {
			sh.Quota = Add(max(0, sh.Quota), below.Quota)
		}
		sh.Request = Add(sh.Request, g.sliceProfiles.inParent(c, name, func(of string) int64 { return g.of(c, of).WithinLimit() }))
		sh.Takes = Add(sh.Takes, g.sliceProfiles.inParent(c, name, func(of string) int64 { return c.most(g.of(c, of)) }))
	}
	return sh
}

// of returns the queue's share of the resource, or an empty share if no queue requests the resource.
func (g *inputs) of(q *Queue, name string) *Share {
	if sh := g.shares[name][q]; sh != nil {
		return sh
	}
	return &Share{Resource: name, Limit: -1, Quota: -1}
}

// bound returns the amount of the resource in the list, and -1 if the list does not name it.
func bound(list cluster.Resources, name string) int64 {
	for _, a := range list {
		if a.Name == name {
			return a.Value
		}
	}
	return -1
}

// entitlement returns the entitlement of the queue to its share.
func (q *Queue) entitlement(sh *Share) entitlement {
	return entitlement{Name: q.Name, Tier: q.Tier, Priority: q.Priority, Created: q.Created, Weight: q.WeightOf(sh.Resource), Quota: sh.Quota, Limit: sh.Limit, Request: sh.Takes, ageRank: q.ageRank}
}

// most returns the most that the queue can take.
func (q *Queue) most(sh *Share) int64 {
	c := q.entitlement(sh)
	return c.most()
}

// WithinLimit returns the part of the request that is within the limit.
func (sh *Share) WithinLimit() int64 {
	if sh.Limit >= 0 {
		return min(sh.Limit, sh.Request)
	}
	return sh.Request
}

// set sets the allotment of the share. The division among siblings gives the queue at most
// Takes, and its stop is Satisfied when it has that. If Takes is less than Request, because
// queues below it can take no more than their quotas, set changes the stop to AtQuota.
func (sh *Share) set(p Allotment) {
	if p.Stop == Satisfied && sh.Request > sh.Takes {
		p.Stop = AtQuota
	}
	sh.Allotment = p
}

// divide divides the total among the siblings, and the share of each among its children.
func (t *Tree) divide(total int64, name string, siblings []*Queue, g *inputs) {
	entitlements := make([]entitlement, len(siblings))
	for i, q := range siblings {
		entitlements[i] = q.entitlement(g.shares[name][q])
	}
	past := t.weigh(total, name, siblings, entitlements)
	for i, part := range allot(total, entitlements) {
		q, sh := siblings[i], g.shares[name][siblings[i]]
		sh.set(part)
		sh.Past = past[i]
		if sh.Request > 0 || sh.Quota > 0 {
			q.Shares = append(q.Shares, *sh)
		}
		if len(q.Children) > 0 {
			t.divide(g.sliceProfiles.forChildren(q, name, func(of string) int64 { return g.of(q, of).Share() }), name, q.Children, g)
		}
	}
}

// weigh applies past use to the weights of the entitlements, if past use counts. It returns
// the effect on each sibling.
func (t *Tree) weigh(total int64, name string, siblings []*Queue, entitlements []entitlement) []*Past {
	if !t.decay.counts() {
		return make([]*Past, len(siblings))
	}
	used, position := make([]sum, len(siblings)), t.pastUse.positions[name]
	for i, q := range siblings {
		used[i] = q.past[position]
	}
	return t.decay.weigh(total, entitlements, used)
}

// Share returns the queue's share of the resource, and nil if the queue neither requests the
// resource nor has a quota of it that is above 0.
func (q *Queue) Share(resource string) *Share {
	for i := range q.Shares {
		if q.Shares[i].Resource == resource {
			return &q.Shares[i]
		}
	}
	return nil
}
