package fairshare

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// kept is the tree of a State, kept from session to session. It works out again
// only what changed requests and totals can change: a claim whose change leaves the
// other parts as they are, as most do, costs nothing but itself. Where past use
// counts, time changes all weights, and everything is divided again whenever the
// shares are asked for; the tree and the requests are kept. It equals what Shares
// works out anew.
type kept struct {
	*Tree
	view     cluster.View
	revision uint64
	asks     demand
	queues   uint64 // version that it is up to date with
	kinds    []cluster.Device
	accounts accounts        // profiles that queues have terms for
	divides  map[string]bool // resources that queues divide, requested or not
	columns  map[string]bool // of these, the ones with quotas, use or requests
	divided  map[divisionOf]*division
	dirty    [][]*division // to be worked out again, by depth
}

// divisionOf names a division: of a resource, among the queues below one or at the top.
type divisionOf struct {
	parent   *Queue
	resource string
}

// division is how siblings divide one resource.
type division struct {
	resource string
	parent   *Queue // nil at the top
	depth    int
	siblings []*Queue
	footing  []footing
	slack    int64 // what is left once all have what they can take; -1: they have not
	dirty    bool
}

// footing is what the part of a claim stands on beyond its quota.
type footing struct {
	dry       bool  // nothing was left for its priority
	rest      bool  // it shares by weight with others that could take more
	left, all int64 // of rest: what is shared, and the weights of those that share it
}

// follow brings the tree in step with the State, of which so much is to be divided.
func (k *kept) follow(s cluster.View, total cluster.Resources, settings Settings) *Tree {
	if k.Tree == nil || k.view != s || k.revision != s.Recent().Terms() || !slices.Equal(k.kinds, s.Kinds()) {
		k.begin(s, settings)
	}
	if k.decay = settings.Decay; k.decay.counts() {
		k.recall()
	}
	k.divideUp(total)
	asking := k.asks.follow(s, k.Tree.forget)
	s.Recent().Queues(k.queues, func(q *cluster.Queue) {
		if node := k.bySlot[q.Slot()]; node.Leaf() {
			asking[q.Name] = true
		}
		k.bySlot[q.Slot()].known = false
	})
	k.queues = s.Recent().QueuesVersion()
	for name := range asking { // in whatever order: each sets requests of its own
		k.ask(k.byName[name])
	}
	k.settle()
	return k.Tree
}

// recall takes in what the queues used until now.
func (k *kept) recall() {
	k.Tree.recall(k.view)
	for _, d := range k.divided { // in any order: each is settled after those above it
		k.soil(d)
	}
}

// begin makes the tree anew, with nothing asked for.
func (k *kept) begin(s cluster.View, settings Settings) {
	*k = kept{
		Tree: newTree(s), view: s, revision: s.Recent().Terms(), asks: newDemand(s), kinds: s.Kinds(), accounts: accountsOf(s), divides: settings.Divided(s),
		columns: map[string]bool{}, divided: map[divisionOf]*division{},
	}
	k.recollection = newRecollection(k.divides)
	line := slices.Clone(k.bySlot)
	slices.SortFunc(line, func(a, b *Queue) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), strings.Compare(a.Name, b.Name))
	})
	for i, q := range line {
		q.parts, q.seniority = map[string]*Share{}, i+1
	}
	for _, q := range k.bySlot {
		for _, a := range q.Quota {
			k.column(a.Name)
		}
	}
}

// column begins to divide a resource, if it is one that queues divide.
func (k *kept) column(name string) {
	if k.columns[name] || !k.divides[name] {
		return
	}
	if k.accounts.has(name) {
		k.column(gpu) // of which they are parts
	}
	k.columns[name] = true
	for _, root := range k.Roots {
		k.enter(root, name)
	}
	k.divisions(name, nil, k.Roots, 0)
}

// enter gives the queue, and those below it, what they deserve of the resource.
func (k *kept) enter(q *Queue, name string) *Share {
	sh := &Share{Resource: name, Limit: bound(q.Limits, name), Quota: bound(q.Quota, name)}
	q.parts[name] = sh
	declared := sh.Quota >= 0
	for _, c := range q.Children {
		if below := k.enter(c, name); !declared && below.Quota >= 0 {
			sh.Quota = plus(max(0, sh.Quota), below.Quota)
		}
	}
	return sh
}

func (k *kept) divisions(name string, parent *Queue, siblings []*Queue, depth int) {
	if len(siblings) == 0 {
		return
	}
	d := &division{resource: name, parent: parent, depth: depth, siblings: siblings}
	k.divided[divisionOf{parent, name}] = d
	for i, q := range siblings {
		q.place = i
		k.divisions(name, q, q.Children, depth+1)
	}
	k.soil(d)
}

// divideUp takes in what there is.
func (k *kept) divideUp(total cluster.Resources) {
	if slices.Equal(k.Total, total) {
		return
	}
	for name := range k.columns {
		if k.Total.Of(name) != total.Of(name) {
			k.soil(k.divided[divisionOf{nil, name}])
		}
	}
	k.Total = total
	for _, q := range k.bySlot {
		q.known = false // its dominant part is another
	}
}

// ask sets what a leaf holds and asks for.
func (k *kept) ask(q *Queue) {
	asks := k.asks.asks[q.Name]
	for _, a := range q.Used {
		k.column(a.Name)
	}
	for name := range asks {
		k.column(name)
	}
	for name := range q.parts {
		v := plus(q.Used.Of(name), asks[name].value())
		k.request(q, name, v, v)
	}
}

// request sets the queue's request and what of it can be taken, and with them those above.
func (k *kept) request(q *Queue, name string, v, takes int64) {
	sh := q.parts[name]
	if sh.Request == v && sh.Takes == takes {
		return
	}
	before, within := q.most(sh), sh.within()
	sh.Request, sh.Takes = v, takes
	claim := q.claim(sh)
	after := claim.most()
	if after != before {
		if d := k.divided[divisionOf{q.Parent, name}]; !d.dirty && !k.absorbs(d, q, sh, before, after) {
			k.soil(d)
		}
	}
	if q.Parent != nil && (after != before || sh.within() != within) {
		k.rise(q.Parent, name)
		if k.accounts.differ(q, name) {
			k.rise(q.Parent, gpu)
		}
	}
	sh.set(Part{sh.Part.Quota, sh.OverQuota, claim.stop(sh.Share())})
	q.show(sh)
}

// show lists the share, unless the queue neither asks for any nor deserves some.
func (q *Queue) show(sh *Share) {
	q.known = false
	listed := q.share(sh.Resource)
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

// absorbs reports whether the parts of the others stay as they are when the queue
// can take another amount than before, and sets its own.
func (k *kept) absorbs(d *division, q *Queue, sh *Share, before, after int64) bool {
	quota := max(0, min(sh.Quota, after))
	switch {
	case k.decay.counts():
		return false
	case d.slack >= 0 && after-before <= d.slack: // all have what they can take, and so has it
		d.slack -= after - before
		sh.Part.Quota, sh.Part.OverQuota = quota, after-quota
		k.pour(q, d.resource)
		return true
	case d.slack >= 0 || quota != max(0, min(sh.Quota, before)):
		return false
	}
	f := d.footing[q.place]
	return f.dry || f.rest && compareProducts(after-sh.Part.Quota, f.all, f.left, weight(&Claim{Weight: q.WeightOf(d.resource)})) > 0
}

// pour has the queues below divide another amount.
func (k *kept) pour(q *Queue, name string) {
	if len(q.Children) == 0 {
		return
	}
	k.soil(k.divided[divisionOf{q, name}])
	if k.accounts.has(name) {
		k.soil(k.divided[divisionOf{q, gpu}])
	}
}

// soil has the division be worked out again.
func (k *kept) soil(d *division) {
	if d.dirty {
		return
	}
	for d.depth >= len(k.dirty) {
		k.dirty = append(k.dirty, nil)
	}
	d.dirty = true
	k.dirty[d.depth] = append(k.dirty[d.depth], d)
}

// settle works out again what has to be, from the top down.
func (k *kept) settle() {
	for depth := 0; depth < len(k.dirty); depth++ {
		for _, d := range k.dirty[depth] {
			k.divide(d)
			d.dirty = false
		}
		k.dirty[depth] = k.dirty[depth][:0]
	}
}

func (k *kept) divide(d *division) {
	total := k.total(d)
	claims := make([]Claim, len(d.siblings))
	for i, q := range d.siblings {
		claims[i] = q.claim(q.parts[d.resource])
	}
	past := k.weigh(total, d.resource, d.siblings, claims)
	d.footing = make([]footing, len(claims))
	var parts []Part
	parts, d.slack = divide(total, claims, d.footing)
	for i, part := range parts {
		q := d.siblings[i]
		sh := q.parts[d.resource]
		was := sh.Part
		if sh.set(part); sh.Part == was && past[i] == nil && sh.Past == nil {
			continue
		}
		if sh.Share() != was.Share() {
			k.pour(q, d.resource)
		}
		sh.Past = past[i]
		q.show(sh)
	}
}
