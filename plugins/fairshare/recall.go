package fairshare

import (
	"maps"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// recollection works out what queues used in the past. It does so for every interval
// of every queue, and most of them are alike: they begin and end at the times of
// reports and of sessions, and name the same resources. So a time is expected to be
// the one that followed the same time before, and a resource to be the one that the
// last interval names in the same position; only others are looked up.
type recollection struct {
	decay   Decay
	places  places
	moments []moment
	known   map[int64]int // moments by time
	last    int           // moment that was asked for last
	named   []named       // by position in the list of an interval, as they were last
}

// moment is a time at which intervals begin or end.
type moment struct {
	time  int64
	power uint64 // what is left by now of what counted then; see halved
	next  int    // moment that was asked for after it last
}

// places are where resources stand in the past of a queue. Those that queues do not
// divide have no place, and are not added up.
type places map[string]int

// placesOf gives the resources places.
func placesOf(divided map[string]bool) places {
	out := places{}
	for i, name := range slices.Sorted(maps.Keys(divided)) {
		out[name] = i
	}
	return out
}

// named is a resource and its place; -1: it has none.
type named struct {
	resource string
	place    int
}

func (p places) find(resource string) named {
	if place, ok := p[resource]; ok {
		return named{resource, place}
	}
	return named{resource, -1}
}

func newRecollection(divided map[string]bool) recollection {
	return recollection{places: placesOf(divided), known: map[int64]int{}}
}

// begin forgets what was left at another time.
func (r *recollection) begin(decay Decay) {
	r.decay, r.moments = decay, r.moments[:0]
	clear(r.known)
	r.last = r.moment(decay.Now)
}

// recall works out what all queues used until now.
func (t *Tree) recall(s cluster.View) {
	t.recollection.begin(t.decay)
	for _, root := range t.Roots {
		t.recollection.recall(s, root)
	}
}

// recall works out what the queue used, and all below it. A queue that reports
// nothing of its past has that of the queues below it together.
func (r *recollection) recall(s cluster.View, q *Queue) {
	if q.past == nil {
		q.past = make([]sum, len(r.places))
	}
	clear(q.past)
	r.add(q.past, q.Queue.Past...)
	if u, held := s.Held(q.Queue); held {
		r.add(q.past, u)
	}
	for _, c := range q.Children {
		r.recall(s, c)
		if len(q.Queue.Past) > 0 {
			continue
		}
		for i := range c.past {
			q.past[i] = q.past[i].plus(c.past[i])
		}
	}
}

// add adds what was used to the sums of resources. An amount that was held from one
// time to another counts with the integral of 2^(-age/halfLife) over that time. An
// amount that is held for ever has an integral of halfLife ÷ ln 2; parts of that are
// what the ends differ by, and what is counted here. What is not past yet does not
// count.
func (r *recollection) add(sums []sum, past ...cluster.Usage) {
	for i := range past {
		u := &past[i]
		to := min(u.To, r.decay.Now)
		if u.From >= to {
			continue
		}
		early, late := r.power(u.From), r.power(to)
		if early >= late {
			continue // too short, or too long ago, to tell
		}
		for k := range u.Resources {
			a := &u.Resources[k]
			if place := r.place(k, a.Name); place >= 0 {
				sums[place] = sums[place].plus(times(a.Value, late-early))
			}
		}
	}
}

// power is what is left by now of what counted at the time.
func (r *recollection) power(time int64) uint64 {
	last := &r.moments[r.last]
	if last.time == time { // the interval begins where the one before it ends
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

// moment looks the time up.
func (r *recollection) moment(time int64) int {
	i, known := r.known[time]
	if !known {
		i = len(r.moments)
		r.moments = append(r.moments, moment{time: time, power: r.decay.halved(r.decay.Now - time)})
		r.known[time] = i
	}
	return i
}

// place is that of the resource, which an interval names in the k-th position; -1: none.
func (r *recollection) place(k int, resource string) int {
	if k == len(r.named) {
		r.named = append(r.named, r.places.find(resource))
	} else if r.named[k].resource != resource {
		r.named[k] = r.places.find(resource)
	}
	return r.named[k].place
}
