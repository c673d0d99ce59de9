package fairshare

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// Keeper keeps the tree of a State from session to session. It computes again only what
// changed requests and totals can change. Most changes of a request do not change the
// shares of other queues, and only the changed queue is computed. If past use counts, time
// changes all weights, and everything is divided again in each session; the tree and the
// requests are kept. The result is the same as that of Shares.
type Keeper struct {
	// Changed is called for a queue when its shares, its use or the total have changed, if
	// it is not nil.
	Changed func(*Queue)
	// JobChanged is called for the queue of a job that has changed, if it is not nil.
	JobChanged func(*Queue)

	tree          *Tree
	offer         offer
	view          cluster.View
	revision      uint64
	asks          demand
	queues        uint64 // version of the queues that was read
	kinds         []cluster.Device
	sliceProfiles sliceProfiles   // slice profiles that queues name
	divided       map[string]bool // resources that queues divide, requested or not
	resources     map[string]bool // those of them with quotas, use or requests
	divisions     map[divisionKey]*division
	dirty         [][]*division // to be computed again, by depth
}

// divisionKey identifies a division: its resource, and the queue that it is below, nil at the top.
type divisionKey struct {
	parent   *Queue
	resource string
}

// division is the division of one resource among siblings.
type division struct {
	resource string
	parent   *Queue // nil at the top
	depth    int
	siblings []*Queue
	basis    []basis
	slack    int64 // -1: some sibling did not get the most that it can take; otherwise what is left, which may be 0
	dirty    bool
}

// basis is what the allotment of an entitlement beyond its quota depends on.
type basis struct {
	dry       bool  // nothing was left for its priority
	rest      bool  // it is one of those that divide the rest by weight, none of which gets the most that it can take
	left, all int64 // with rest: the amount that is divided, and the sum of the weights
}

// Follow updates the tree from the State and returns it.
func (k *Keeper) Follow(s cluster.View, settings Settings) *Tree {
	return k.follow(s, k.offer.of(s), settings)
}

func (k *Keeper) changed(q *Queue) {
	if k.Changed != nil {
		k.Changed(q)
	}
}

func (k *Keeper) jobChanged(j *cluster.Job) {
	if leaf := k.tree.ByName[j.Queue]; leaf != nil && k.JobChanged != nil {
		k.JobChanged(leaf)
	}
}

func sameSpec(a, b cluster.Device) bool { return *a.DeviceSpec == *b.DeviceSpec }

// follow is Follow with a given total.
func (k *Keeper) follow(s cluster.View, total cluster.Resources, settings Settings) *Tree {
	if k.tree == nil || k.view != s || k.revision != s.Recent().QueueSpecsVersion() || !slices.EqualFunc(k.kinds, s.Kinds(), sameSpec) {
		k.reset(s, settings)
	}
	if k.tree.decay = settings.Decay; k.tree.decay.counts() {
		k.updatePastUse()
	}
	k.setTotal(total)
	changed := k.asks.follow(s, k.jobChanged)
	s.Recent().Queues(k.queues, func(q *cluster.Queue) {
		if node := k.tree.BySlot[q.Slot()]; node.Leaf() {
			changed[q.Name] = true
		}
		k.changed(k.tree.BySlot[q.Slot()])
	})
	k.queues = s.Recent().QueuesVersion()
	for name := range changed { // the order does not matter: each sets its own requests
		k.setLeafRequest(k.tree.ByName[name])
	}
	k.divideDirty()
	return k.tree
}

// Slots returns the number of slots of the queues of the tree.
func (k *Keeper) Slots() int { return len(k.tree.BySlot) }

// updatePastUse computes past use again, and marks all divisions as dirty.
func (k *Keeper) updatePastUse() {
	k.tree.addUpPastUse(k.view)
	for _, d := range k.divisions { // the order does not matter: divisions are computed by depth
		k.markDirty(d)
	}
}

// reset builds a new tree without requests.
func (k *Keeper) reset(s cluster.View, settings Settings) {
	*k = Keeper{
		Changed: k.Changed, JobChanged: k.JobChanged, offer: k.offer,
		tree: newTree(s), view: s, revision: s.Recent().QueueSpecsVersion(), asks: newDemand(s), kinds: s.Kinds(), sliceProfiles: sliceProfilesOf(s), divided: settings.Divided(s),
		resources: map[string]bool{}, divisions: map[divisionKey]*division{},
	}
	k.tree.pastUse = newPastUse(k.divided)
	line := slices.Clone(k.tree.BySlot)
	slices.SortFunc(line, func(a, b *Queue) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), strings.Compare(a.Name, b.Name))
	})
	for i, q := range line {
		q.all, q.ageRank = map[string]*Share{}, i+1
	}
	for _, q := range k.tree.BySlot {
		for _, a := range q.Quota {
			k.addResource(a.Name)
		}
	}
}

// addResource starts to divide a resource, if it is one that queues divide.
func (k *Keeper) addResource(name string) {
	if k.resources[name] || !k.divided[name] {
		return
	}
	if k.sliceProfiles.has(name) {
		k.addResource(gpu) // of which slices are fractions
	}
	k.resources[name] = true
	for _, root := range k.tree.Roots {
		k.setQuotas(root, name)
	}
	k.addDivisions(name, nil, k.tree.Roots, 0)
}

// setQuotas sets quota and limit of the resource for the queue and all queues below it.
func (k *Keeper) setQuotas(q *Queue, name string) *Share {
	sh := &Share{Resource: name, Limit: bound(q.Limits, name), Quota: bound(q.Quota, name)}
	q.all[name] = sh
	declared := sh.Quota >= 0
	for _, c := range q.Children {
		if below := k.setQuotas(c, name); !declared && below.Quota >= 0 {
			sh.Quota = Add(max(0, sh.Quota), below.Quota)
		}
	}
	return sh
}

func (k *Keeper) addDivisions(name string, parent *Queue, siblings []*Queue, depth int) {
	if len(siblings) == 0 {
		return
	}
	d := &division{resource: name, parent: parent, depth: depth, siblings: siblings}
	k.divisions[divisionKey{parent, name}] = d
	for i, q := range siblings {
		q.index = i
		k.addDivisions(name, q, q.Children, depth+1)
	}
	k.markDirty(d)
}

// setTotal sets the total.
func (k *Keeper) setTotal(total cluster.Resources) {
	if slices.Equal(k.tree.Total, total) {
		return
	}
	for name := range k.resources {
		if k.tree.Total.Of(name) != total.Of(name) {
			k.markDirty(k.divisions[divisionKey{nil, name}])
		}
	}
	k.tree.Total = total
	for _, q := range k.tree.BySlot {
		k.changed(q)
	}
}

// setLeafRequest sets what a leaf holds and requests.
func (k *Keeper) setLeafRequest(q *Queue) {
	asks := k.asks.asks[q.Name]
	for _, a := range q.Used {
		k.addResource(a.Name)
	}
	for name := range asks {
		k.addResource(name)
	}
	for name := range q.all {
		v := Add(q.Used.Of(name), asks[name].value())
		k.setRequest(q, name, v, v)
	}
}

// setRequest sets the queue's request and the part of it that can be taken, and updates the queues above.
func (k *Keeper) setRequest(q *Queue, name string, v, takes int64) {
	sh := q.all[name]
	if sh.Request == v && sh.Takes == takes {
		return
	}
	before, within := q.most(sh), sh.WithinLimit()
	sh.Request, sh.Takes = v, takes
	e := q.entitlement(sh)
	after := e.most()
	if after != before {
		if d := k.divisions[divisionKey{q.Parent, name}]; !d.dirty && !k.absorbs(d, q, sh, before, after) {
			k.markDirty(d)
		}
	}
	if q.Parent != nil && (after != before || sh.WithinLimit() != within) {
		k.setParentRequest(q.Parent, name)
		if k.sliceProfiles.differs(q, name) {
			k.setParentRequest(q.Parent, gpu)
		}
	}
	sh.set(Allotment{sh.Allotment.Quota, sh.OverQuota, e.stop(sh.Share())})
	k.list(q, sh)
}

// list updates the listed share. A share is listed only if its request or its quota is above 0.
func (k *Keeper) list(q *Queue, sh *Share) {
	k.changed(q)
	listed := q.Share(sh.Resource)
	switch visible := sh.Request > 0 || sh.Quota > 0; {
	case visible && listed != nil:
		*listed = *sh
	case visible:
		i, _ := slices.BinarySearchFunc(q.Shares, sh.Resource, func(x Share, name string) int { return strings.Compare(x.Resource, name) })
		q.Shares = slices.Insert(q.Shares, i, *sh)
	case listed != nil:
		q.Shares = slices.DeleteFunc(q.Shares, func(x Share) bool { return x.Resource == sh.Resource })
	}
}

// absorbs reports whether the shares of the siblings stay as they are when the most that
// the queue can take changes. If so, it sets the queue's own share.
func (k *Keeper) absorbs(d *division, q *Queue, sh *Share, before, after int64) bool {
	quota := max(0, min(sh.Quota, after))
	switch {
	case k.tree.decay.counts():
		return false
	case d.slack >= 0 && after-before <= d.slack: // all have the most that they can take, and still do
		d.slack -= after - before
		sh.Allotment.Quota, sh.Allotment.OverQuota = quota, after-quota
		k.markBelowDirty(q, d.resource)
		return true
	case d.slack >= 0 || quota != max(0, min(sh.Quota, before)):
		return false
	}
	f := d.basis[q.index]
	return f.dry || f.rest && CompareProducts(after-sh.Allotment.Quota, f.all, f.left, weight(&entitlement{Weight: q.WeightOf(d.resource)})) > 0
}

// markBelowDirty marks the divisions below the queue as dirty, because its share changed.
func (k *Keeper) markBelowDirty(q *Queue, name string) {
	if len(q.Children) == 0 {
		return
	}
	k.markDirty(k.divisions[divisionKey{q, name}])
	if k.sliceProfiles.has(name) {
		k.markDirty(k.divisions[divisionKey{q, gpu}])
	}
}

// markDirty marks the division to be computed again.
func (k *Keeper) markDirty(d *division) {
	if d.dirty {
		return
	}
	for d.depth >= len(k.dirty) {
		k.dirty = append(k.dirty, nil)
	}
	d.dirty = true
	k.dirty[d.depth] = append(k.dirty[d.depth], d)
}

// divideDirty computes the dirty divisions again, from the top down.
func (k *Keeper) divideDirty() {
	for depth := 0; depth < len(k.dirty); depth++ {
		for _, d := range k.dirty[depth] {
			k.divide(d)
			d.dirty = false
		}
		k.dirty[depth] = k.dirty[depth][:0]
	}
}

func (k *Keeper) divide(d *division) {
	total := k.totalOf(d)
	entitlements := make([]entitlement, len(d.siblings))
	for i, q := range d.siblings {
		entitlements[i] = q.entitlement(q.all[d.resource])
	}
	past := k.tree.weigh(total, d.resource, d.siblings, entitlements)
	d.basis = make([]basis, len(entitlements))
	var parts []Allotment
	parts, d.slack = allotWith(total, entitlements, d.basis)
	for i, part := range parts {
		q := d.siblings[i]
		sh := q.all[d.resource]
		was := sh.Allotment
		if sh.set(part); sh.Allotment == was && past[i] == nil && sh.Past == nil {
			continue
		}
		if sh.Share() != was.Share() {
			k.markBelowDirty(q, d.resource)
		}
		sh.Past = past[i]
		k.list(q, sh)
	}
}

// setParentRequest computes the request of a queue from those of its children.
func (k *Keeper) setParentRequest(q *Queue, name string) {
	v, takes := int64(0), int64(0)
	for _, c := range q.Children {
		v = Add(v, k.sliceProfiles.inParent(c, name, func(of string) int64 { return c.shareOrNone(of).WithinLimit() }))
		takes = Add(takes, k.sliceProfiles.inParent(c, name, func(of string) int64 { return c.most(c.shareOrNone(of)) }))
	}
	k.setRequest(q, name, v, takes)
}

// shareOrNone returns the queue's share of the resource, or an empty share if no queue requests the resource.
func (q *Queue) shareOrNone(name string) *Share {
	if sh := q.all[name]; sh != nil {
		return sh
	}
	return &Share{Resource: name, Limit: -1, Quota: -1}
}

// totalOf returns what the siblings divide.
func (k *Keeper) totalOf(d *division) int64 {
	if d.parent == nil {
		return k.tree.Total.Of(d.resource)
	}
	return k.sliceProfiles.forChildren(d.parent, d.resource, func(of string) int64 { return d.parent.shareOrNone(of).Share() })
}
