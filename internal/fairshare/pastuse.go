package fairshare

import (
	"maps"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// pastUse computes the past use of queues. It adds up every interval of every queue,
// and most intervals are similar: they begin and end at the times of reports and of
// sessions, and name the same resources. It therefore expects a time to be the one that
// followed the same time before, and a resource to be the one that the last interval
// named at the same index. Only other times and resources are looked up.
type pastUse struct {
	decay     Decay
	positions positions
	moments   []moment
	known     map[int64]int   // moments by time
	last      int             // index of the moment that was last used
	named     []namedPosition // by index in the list of an interval, as last used
}

// moment is a time at which intervals begin or end.
type moment struct {
	time  int64
	power uint64 // the factor with which use at that time counts now; see halved
	next  int    // index of the moment that was used after this one
}

// positions maps resources to positions in the past use of a queue. Resources that queues do
// not divide have no position and are not added up.
type positions map[string]int

// positionsOf assigns positions to the resources.
func positionsOf(divided map[string]bool) positions {
	out := positions{}
	for i, name := range slices.Sorted(maps.Keys(divided)) {
		out[name] = i
	}
	return out
}

// namedPosition is a resource with its position; -1: none.
type namedPosition struct {
	resource string
	position int
}

func (p positions) find(resource string) namedPosition {
	if position, ok := p[resource]; ok {
		return namedPosition{resource, position}
	}
	return namedPosition{resource, -1}
}

func newPastUse(divided map[string]bool) pastUse {
	return pastUse{positions: positionsOf(divided), known: map[int64]int{}}
}

// reset drops the factors of another time.
func (r *pastUse) reset(decay Decay) {
	r.decay, r.moments = decay, r.moments[:0]
	clear(r.known)
	r.last = r.moment(decay.Now)
}

// addUpPastUse computes the past use of all queues.
func (t *Tree) addUpPastUse(s cluster.View) {
	t.pastUse.reset(t.decay)
	for _, root := range t.Roots {
		t.pastUse.addUp(s, root)
	}
}

// addUp computes the past use of the queue and of all queues below it. The past use of a queue
// is what its Past lists, and what it has held since then (View.Held). If its Past is empty,
// the past use of the queues below it is added.
func (r *pastUse) addUp(s cluster.View, q *Queue) {
	if q.past == nil {
		q.past = make([]sum, len(r.positions))
	}
	clear(q.past)
	r.add(q.past, q.Queue.Past...)
	if u, held := s.Held(q.Queue); held {
		r.add(q.past, u)
	}
	for _, c := range q.Children {
		r.addUp(s, c)
		if len(q.Queue.Past) > 0 {
			continue
		}
		for i := range c.past {
			q.past[i] = q.past[i].plus(c.past[i])
		}
	}
}

// add adds use to the sums of resources. An amount that was held between two times counts
// with the integral of 2^(-age/halfLife) over that time, as a fraction of the integral
// for an amount that is held forever, which is halfLife ÷ ln 2. That fraction is the
// difference of the factors of the two times. Use after now does not count.
func (r *pastUse) add(sums []sum, past ...cluster.Usage) {
	for i := range past {
		u := &past[i]
		to := min(u.To, r.decay.Now)
		if u.From >= to {
			continue
		}
		early, late := r.power(u.From), r.power(to)
		if early >= late {
			continue // the interval is too short, or too long ago, to count
		}
		for k := range u.Resources {
			a := &u.Resources[k]
			if position := r.position(k, a.Name); position >= 0 {
				sums[position] = sums[position].plus(times(a.Value, late-early))
			}
		}
	}
}

// power returns the factor with which use at the time counts now.
func (r *pastUse) power(time int64) uint64 {
	last := &r.moments[r.last]
	if last.time == time { // the interval begins where the previous one ends
		return last.power
	}
	next := last.next
	if r.moments[next].time != time {
		next = r.moment(time)
		r.moments[r.last].next = next
	}
	r.last = next
	return r.moments[next].power
}

// moment returns the index of the moment of the time.
func (r *pastUse) moment(time int64) int {
	i, known := r.known[time]
	if !known {
		i = len(r.moments)
		r.moments = append(r.moments, moment{time: time, power: r.decay.halved(r.decay.Now - time)})
		r.known[time] = i
	}
	return i
}

// position returns the position of the resource that an interval names at index k; -1: none.
func (r *pastUse) position(k int, resource string) int {
	if k == len(r.named) {
		r.named = append(r.named, r.positions.find(resource))
	} else if r.named[k].resource != resource {
		r.named[k] = r.positions.find(resource)
	}
	return r.named[k].position
}
