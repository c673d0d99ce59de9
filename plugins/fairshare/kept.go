package fairshare

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// kept keeps the tree of a State from session to session. It computes again only what
// changed requests and totals can change. Most changes of a request do not change the
// shares of other queues, and only the changed queue is computed. If past use counts, time
// changes all weights, and everything is divided again in each session; the tree and the
// requests are kept. The result is the same as that of Shares.
type kept struct {
	*Tree
	view     cluster.View
	revision uint64
	asks     demand
	queues   uint64 // version of the queues that was read
	kinds    []cluster.Device
	accounts accounts        // slice profiles that queues name
	divides  map[string]bool // resources that queues divide, requested or not
	columns  map[string]bool // those of them with quotas, use or requests
	divided  map[divisionOf]*division
	dirty    [][]*division // to be computed again, by depth
}

// divisionOf identifies a division: its resource, and the queue that it is below, nil at the top.
type divisionOf struct {
	parent   *Queue
	resource string
}

// division is the division of one resource among siblings.
type division struct {
	resource string
	parent   *Queue // nil at the top
	depth    int
	siblings []*Queue
	footing  []footing
	slack    int64 // what is left if all have the most that they can take; -1 otherwise
	dirty    bool
}

// footing is what the allotment of an entitlement beyond its quota depends on.
type footing struct {
	dry       bool  // nothing was left for its priority
	rest      bool  // it divides by weight with others that could take more
	left, all int64 // with rest: the amount that is divided, and the sum of the weights
}

// follow updates the tree from the State and divides the total.
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
	for name := range asking { // the order does not matter: each sets its own requests
		k.ask(k.byName[name])
	}
	k.settle()
	return k.Tree
}

// recall computes past use again, and marks all divisions as dirty.
func (k *kept) recall() {
	k.Tree.recall(k.view)
	for _, d := range k.divided { // the order does not matter: divisions are computed by depth
		k.soil(d)
	}
}

// begin builds a new tree without requests.
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

// column starts to divide a resource, if it is one that queues divide.
func (k *kept) column(name string) {
	if k.columns[name] || !k.divides[name] {
		return
	}
	if k.accounts.has(name) {
		k.column(gpu) // of which slices are fractions
	}
	k.columns[name] = true
	for _, root := range k.Roots {
		k.enter(root, name)
	}
	k.divisions(name, nil, k.Roots, 0)
}

// enter sets quota and limit of the resource for the queue and all queues below it.
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

// divideUp sets the total.
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
		q.known = false // its largest fraction of the total has changed
	}
}

// ask sets what a leaf holds and requests.
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

// request sets the queue's request and the part of it that can be taken, and updates the queues above.
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

// show updates the listed share. A share without request and quota is not listed.
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

// absorbs reports whether the shares of the siblings stay as they are when the most that
// the queue can take changes. If so, it sets the queue's own share.
func (k *kept) absorbs(d *division, q *Queue, sh *Share, before, after int64) bool {
	quota := max(0, min(sh.Quota, after))
	switch {
	case k.decay.counts():
		return false
	case d.slack >= 0 && after-before <= d.slack: // all have the most that they can take, and still do
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

// pour marks the divisions below the queue as dirty, because its share changed.
func (k *kept) pour(q *Queue, name string) {
	if len(q.Children) == 0 {
		return
	}
	k.soil(k.divided[divisionOf{q, name}])
	if k.accounts.has(name) {
		k.soil(k.divided[divisionOf{q, gpu}])
	}
}

// soil marks the division to be computed again.
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

// settle computes the dirty divisions again, from the top down.
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
