package oracle

import (
	"container/heap"
	"math/bits"
)

// plan is who goes, and what that costs.
type plan struct {
	victims uint64
	cost    cost
	minimum []*task // of the job, that it makes room for
}

// What is tried for a turn at most: sets of victims, and seats. Larger cases are
// counted and left out.
const (
	maxPlans = 4096
	maxSteps = 400_000
)

// cheapest finds the cheapest plan that the rules allow and after which the
// job's minimum fits, and whoever moves lands. All sets of victims that can be
// reached one by one, in any order, are tried from the cheapest up. Nobody moves
// on the board. Only those of the set within may go.
func (b *board) cheapest(k Kind, j *job, within uint64) (best plan, found bool, err error) {
	for _, minimum := range b.minima(j) {
		p, ok, err := b.cheapestFor(&request{k, j, asked(minimum)}, minimum, within)
		if err != nil {
			return plan{}, false, err
		}
		if ok && (!found || p.cost.less(best.cost)) {
			best, found = p, true
		}
	}
	return best, found, nil
}

func (b *board) cheapestFor(r *request, minimum []*task, within uint64) (plan, bool, error) {
	if hopeless, err := b.hopeless(r, minimum, within); hopeless || err != nil {
		return plan{}, false, err
	}
	seen := map[uint64]bool{0: true}
	open := &frontier{{minimum: minimum}}
	for open.Len() > 0 {
		p := heap.Pop(open).(plan)
		seats := b.evict(p.victims)
		ok, err := b.fits(b.wanting(r, &p), false)
		if ok || err != nil {
			b.restore(p.victims, seats)
			return p, ok, err
		}
		for _, u := range b.units(r) {
			next := plan{p.victims | u.set(), p.cost.plus(costOf(r, &u)), minimum}
			if u.set()&^within != 0 || seen[next.victims] || b.spares(r, &u) != "" {
				continue
			}
			seen[next.victims] = true
			heap.Push(open, next)
		}
		b.restore(p.victims, seats)
		if len(seen) > maxPlans {
			return plan{}, false, errTooLarge
		}
	}
	return plan{}, false, nil
}

// wanting are those who need a seat once the victims are gone.
func (b *board) wanting(r *request, p *plan) []*task {
	if r.kind != Consolidate {
		return p.minimum
	}
	return append(b.members(p.victims), p.minimum...)
}

// hopeless reports whether the minimum would not fit even if everybody went who
// is not spared for what it is.
func (b *board) hopeless(r *request, minimum []*task, within uint64) (bool, error) {
	all := uint64(0)
	for _, t := range b.tasks {
		if b.at[t.index].bound && t.job.Preemptible && t.job != r.job {
			all |= t.bit() & within
		}
	}
	seats := b.evict(all)
	ok, err := b.fits(minimum, false)
	b.restore(all, seats)
	return !ok, err
}

// reaches reports whether the rules let exactly these victims go, one after the
// other, in some order, and what they cost. If not it says which rule stopped it.
func (b *board) reaches(r *request, victims uint64) (spent cost, ok bool, why string) {
	seen := map[uint64]bool{}
	why = "a gang is left below its minimum"
	var from func(gone uint64, spent cost) (cost, bool)
	from = func(gone uint64, spent cost) (cost, bool) {
		if gone == victims || seen[gone] {
			return spent, gone == victims
		}
		seen[gone] = true
		seats := b.evict(gone)
		var next []plan
		for _, u := range b.units(r) {
			if u.set()&^victims != 0 {
				continue
			}
			if rule := b.spares(r, &u); rule != "" {
				why = rule
				continue
			}
			next = append(next, plan{victims: gone | u.set(), cost: spent.plus(costOf(r, &u))})
		}
		b.restore(gone, seats)
		for _, p := range next {
			if all, ok := from(p.victims, p.cost); ok {
				return all, true
			}
		}
		return cost{}, false
	}
	spent, ok = from(0, cost{})
	return spent, ok, why
}

// evict takes the tasks off their seats, which it returns in order.
func (b *board) evict(set uint64) []seat {
	var seats []seat
	for _, t := range b.members(set) {
		seats = append(seats, b.rise(t))
	}
	return seats
}

func (b *board) restore(set uint64, seats []seat) {
	for i, t := range b.members(set) {
		b.sit(t, seats[i])
	}
}

// frontier gives the cheapest plan first, then the one that was found first by its set.
type frontier []plan

func (f frontier) Len() int { return len(f) }
func (f frontier) Less(i, j int) bool {
	if f[i].cost != f[j].cost {
		return f[i].cost.less(f[j].cost)
	}
	return bits.Reverse64(f[i].victims) > bits.Reverse64(f[j].victims)
}
func (f frontier) Swap(i, j int) { f[i], f[j] = f[j], f[i] }
func (f *frontier) Push(x any)   { *f = append(*f, x.(plan)) }
func (f *frontier) Pop() any {
	last := (*f)[len(*f)-1]
	*f = (*f)[:len(*f)-1]
	return last
}
