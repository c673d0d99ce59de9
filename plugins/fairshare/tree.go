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

	byName map[string]*Queue
	bySlot []*Queue
	decay  Decay

	recollection recollection
}

// Queue is a queue with its shares.
type Queue struct {
	*cluster.Queue
	Parent   *Queue
	Children []*Queue // by name
	branch   []*Queue // the queues from the top down to this one
	slices   bool     // it names MIG slices in its quota, limits or weights
	Shares   []Share  // by resource, without those that the queue neither requests nor has a quota of

	past   []sum       // past use, by position of the resource, if past use counts
	stands [2]standing // for the jobs that it was last compared with, while known
	known  bool
	asks   [2]asks // of a leaf, for the same jobs
	oldest int     // index in stands

	// The following fields are used if the tree is kept from session to session.
	parts map[string]*Share // shares of all resources that are divided
	place int               // index among its siblings

	seniority int
}

// Share is what one queue has of one resource, with the figures that it is computed from.
type Share struct {
	Resource string
	Quota    int64 // its own, or the sum of those below it; -1: none
	Limit    int64 // -1: none
	Request  int64 // what its tasks hold and pending tasks request, within the limits of the queues below
	Takes    int64 // the part of the request that the queues below can take: with a weight of 0 a queue takes no more than its quota
	Part
	Past *Past // nil if past use changed nothing
}

// newTree returns the tree of queues without shares.
func newTree(s cluster.View) *Tree {
	t := &Tree{byName: map[string]*Queue{}}
	queues := s.Queues()
	for _, q := range queues {
		t.byName[q.Name] = &Queue{Queue: q, slices: len(profiles(q)) > 0}
	}
	t.bySlot = make([]*Queue, len(queues))
	for _, q := range queues {
		node := t.byName[q.Name]
		t.bySlot[q.Slot()] = node
		if above := s.Parent(q); above != nil { // without its parent, a queue is at the top
			node.Parent = t.byName[above.Name]
		}
		if node.Parent == nil {
			t.Roots = append(t.Roots, node)
		} else {
			node.Parent.Children = append(node.Parent.Children, node)
		}
	}
	for _, q := range t.byName {
		for p := q; p != nil; p = p.Parent {
			q.branch = append(q.branch, p)
		}
		slices.Reverse(q.branch)
	}
	return t
}

// Shares divides the total among all queues of the State, from the top down: the children of
// a queue divide what the queue gets.
func Shares(s cluster.View, total cluster.Resources, settings Settings) *Tree {
	t := newTree(s)
	t.Total, t.decay = total, settings.Decay
	names := map[string]bool{}
	for _, q := range t.bySlot {
		for _, list := range []cluster.Resources{q.Quota, q.Used} {
			for _, a := range list {
				names[a.Name] = true
			}
		}
	}
	divided := settings.Divided(s)
	t.recollection = newRecollection(divided)
	if t.decay.counts() {
		t.recall(s)
	}
	asks := pendingRequests(s)
	for _, list := range asks {
		for name := range list {
			names[name] = true
		}
	}
	g := gathering{asks, accountsOf(s), map[string]map[*Queue]*Share{}}
	work := func(name string) {
		if !divided[name] {
			return
		}
		g.shares[name] = map[*Queue]*Share{}
		for _, root := range t.Roots {
			g.gather(root, name)
		}
		t.divide(total.Of(name), name, t.Roots, &g)
	}
	for _, a := range g.accounts { // before nvidia.com/gpu, of which slices are fractions
		if names[a.name] {
			names[gpu] = true
			work(a.name)
			delete(names, a.name)
		}
	}
	for name := range names {
		work(name)
	}
	for _, q := range t.byName {
		slices.SortFunc(q.Shares, func(a, b Share) int { return strings.Compare(a.Resource, b.Resource) })
	}
	return t
}

// gathering holds what shares are computed from, and the shares by resource.
type gathering struct {
	asks     map[string]map[string]int64
	accounts accounts
	shares   map[string]map[*Queue]*Share
}

// gather computes quota and request of the queue from those of the queues below it.
func (g *gathering) gather(q *Queue, name string) *Share {
	sh := &Share{Resource: name, Limit: bound(q.Limits, name), Quota: bound(q.Quota, name)}
	g.shares[name][q] = sh
	declared := sh.Quota >= 0
	if q.Leaf() {
		sh.Request = plus(q.Used.Of(name), g.asks[q.Name][name])
		sh.Takes = sh.Request
		return sh
	}
	for _, c := range q.Children {
		if below := g.gather(c, name); !declared && below.Quota >= 0 {
			sh.Quota = plus(max(0, sh.Quota), below.Quota)
		}
		sh.Request = plus(sh.Request, g.accounts.rises(c, name, func(of string) int64 { return g.of(c, of).within() }))
		sh.Takes = plus(sh.Takes, g.accounts.rises(c, name, func(of string) int64 { return c.most(g.of(c, of)) }))
	}
	return sh
}

// of returns the queue's share of the resource, or an empty share if no queue requests the resource.
func (g *gathering) of(q *Queue, name string) *Share {
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

// claim returns the entitlement of the queue to its share.
func (q *Queue) claim(sh *Share) Claim {
	return Claim{Name: q.Name, Tier: q.Tier, Priority: q.Priority, Created: q.Created, Weight: q.WeightOf(sh.Resource), Quota: sh.Quota, Limit: sh.Limit, Request: sh.Takes, seniority: q.seniority}
}

// most returns the most that the queue can take.
func (q *Queue) most(sh *Share) int64 {
	c := q.claim(sh)
	return c.most()
}

// within returns the part of the request that is within the limit.
func (sh *Share) within() int64 {
	if sh.Limit >= 0 {
		return min(sh.Limit, sh.Request)
	}
	return sh.Request
}

// set sets the allotment of the share. A queue can be Satisfied with less than it requests,
// if the queues below it can take no more than their quotas; its stop is then AtQuota.
func (sh *Share) set(p Part) {
	if p.Stop == Satisfied && sh.Request > sh.Takes {
		p.Stop = AtQuota
	}
	sh.Part = p
}

// divide divides the total among the siblings, and the share of each among its children.
func (t *Tree) divide(total int64, name string, siblings []*Queue, g *gathering) {
	claims := make([]Claim, len(siblings))
	for i, q := range siblings {
		claims[i] = q.claim(g.shares[name][q])
	}
	past := t.weigh(total, name, siblings, claims)
	for i, part := range Divide(total, claims) {
		q, sh := siblings[i], g.shares[name][siblings[i]]
		sh.set(part)
		sh.Past = past[i]
		if sh.Request > 0 || sh.Quota > 0 {
			q.Shares = append(q.Shares, *sh)
		}
		if len(q.Children) > 0 {
			t.divide(g.accounts.falls(q, name, func(of string) int64 { return g.of(q, of).Share() }), name, q.Children, g)
		}
	}
}

// weigh applies past use to the weights of the entitlements, if past use counts. It returns
// the effect on each sibling.
func (t *Tree) weigh(total int64, name string, siblings []*Queue, claims []Claim) []*Past {
	if !t.decay.counts() {
		return make([]*Past, len(siblings))
	}
	used, place := make([]sum, len(siblings)), t.recollection.places[name]
	for i, q := range siblings {
		used[i] = q.past[place]
	}
	return t.decay.weigh(total, claims, used)
}
