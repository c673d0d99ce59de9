package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Demand is what tasks that arrived have requested. State counts it so that plugins can expect what
// will arrive. Older arrivals count less than newer ones.
type Demand struct {
	// Arrived is how many tasks have arrived in all.
	Arrived int64 `json:"arrived,omitempty"`
	// Left is how many of them were placed or had ended when they were removed.
	Left int64 `json:"left,omitempty"`
	// Requests are the requests, in a fixed order.
	Requests []Requested `json:"requests,omitempty"`
	// Learnt is a copy of Requests that changes seldom, for plugins whose scores depend on it. It is
	// made when 8, 16, 32, … tasks have arrived, and later after every 65,536 arrivals or, if a
	// quarter of what is requested has changed, after 8,192.
	Learnt []Requested `json:"learnt,omitempty"`
	// LearntAt is how many tasks had arrived then; 0: Learnt is empty.
	LearntAt int64 `json:"learntAt,omitempty"`
}

// The first copy is made at learnFirst arrivals, and later ones are at most learnEvery apart. After
// each learnEarly arrivals the requests are compared with the copy: jobs that are submitted in series
// make the counts of so many arrivals differ by up to a fifth, although the same is requested over time.
const (
	learnFirst  = 8
	learnEarly  = 8192
	learnEvery  = 65_536
	learnChange = 0.25
)

// copyIsDue reports whether Learnt is to be made again; before is how many tasks had arrived before
// these arrivals.
func (d *Demand) copyIsDue(before int64) bool {
	if d.Arrived >= max(learnFirst, min(2*d.LearntAt, d.LearntAt+learnEvery)) {
		return true
	}
	compares := (d.Arrived-d.LearntAt)/learnEarly > (before-d.LearntAt)/learnEarly
	return compares && difference(d.Requests, d.Learnt) > learnChange
}

// difference returns which part of the tasks and devices would have to be requested differently to
// turn one list into the other, from 0 to 1. The lists are sorted by their keys.
func difference(a, b []Requested) float64 {
	all := [...]float64{sizeOf(a), sizeOf(b)}
	sum := 0.0
	for len(a) > 0 || len(b) > 0 {
		order := 0 // which list has the next key
		switch {
		case len(b) == 0:
			order = -1
		case len(a) == 0:
			order = +1
		default:
			order = strings.Compare(a[0].key, b[0].key)
		}
		var x, y float64
		if order <= 0 {
			x, a = sizeOf(a[:1])/all[0], a[1:]
		}
		if order >= 0 {
			y, b = sizeOf(b[:1])/all[1], b[1:]
		}
		sum += max(x-y, y-x)
	}
	return sum / 2
}

// sizeOf returns the sum of the tasks and devices that are requested.
func sizeOf(list []Requested) (sum float64) {
	for i := range list {
		sum += float64(float64(list[i].Weight) * float64(1+list[i].Need.Devices)) // the conversion keeps all machines from rounding once only
	}
	return sum
}

// Requested is how often something was requested.
type Requested struct {
	Resources Resources `json:"resources,omitempty"` // as in Shape
	Need      Need      `json:"need,omitzero"`       // as in Shape
	// Weight counts the arrivals: a new one adds ArrivalWeight, and all weights are halved when
	// their sum exceeds maxDemand.
	Weight int64 `json:"weight,omitempty"`

	key string // the encoding of the request, by which requests are sorted
}

// ArrivalWeight is what a new arrival adds to the weight of its request.
const ArrivalWeight = 1024

// maxDemand bounds the sum of all weights: about the last 16,000 to 32,000 arrivals count. A request
// that has become rarer than one in a million is forgotten.
const maxDemand = 32_768 * ArrivalWeight

// maxRequests bounds how many different requests are counted. If there are more, all weights are
// halved until some are forgotten.
const maxRequests = 10_000

// demand counts arrivals.
type demand struct {
	journal *journal
	Demand
	sum     int64          // of all weights
	byShape map[*Shape]int // a cache of indexes in Requests, for interned shapes
	key     []byte         // a buffer
}

func newDemand(l *journal) demand {
	return demand{journal: l, byShape: map[*Shape]int{}}
}

// arrive counts new tasks of interned shapes.
func (d *demand) arrive(tasks []*Task) {
	if len(tasks) == 0 {
		return
	}
	if d.journal.recording() {
		d.recordUndo()
	}
	before := d.Arrived
	for _, t := range tasks {
		d.Arrived++
		d.Requests[d.find(t.Shape)].Weight += ArrivalWeight
		d.sum += ArrivalWeight
	}
	for d.sum > maxDemand || len(d.Requests) > maxRequests {
		d.halve()
	}
	if len(d.Requests) > 0 && d.copyIsDue(before) {
		d.Learnt, d.LearntAt = slices.Clone(d.Requests), d.Arrived
	}
}

// CountDemand counts the tasks of all jobs as if they had just arrived, and nothing else. So the
// Demand of a State that is made of objects depends on the objects alone.
func (s *State) CountDemand() {
	if s.CountsDemand() {
		return
	}
	if s.journal.recording() {
		s.demand.recordUndo()
	}
	s.demand.restore(s.countedDemand())
}

// CountsDemand reports whether the Demand is what CountDemand counts. It is not if more tasks have
// arrived than the State has now.
func (s *State) CountsDemand() bool {
	a, b := &s.demand.Demand, s.countedDemand()
	same := func(a, b Requested) bool { return a.key == b.key && a.Weight == b.Weight }
	return a.Arrived == b.Arrived && a.Left == b.Left && a.LearntAt == b.LearntAt && slices.EqualFunc(a.Requests, b.Requests, same) && slices.EqualFunc(a.Learnt, b.Learnt, same)
}

func (s *State) countedDemand() Demand {
	d := newDemand(&journal{})
	for _, j := range s.Jobs() {
		d.arrive(j.Alternatives[0].Tasks)
	}
	if d.Arrived >= learnFirst && len(d.Requests) > 0 {
		d.Learnt, d.LearntAt = slices.Clone(d.Requests), d.Arrived
	}
	return d.Demand
}

// leave counts a task that is removed.
func (d *demand) leave(t *Task) {
	if !t.isPlacedOrEnded() {
		return
	}
	if d.journal.recording() {
		left := d.Left
		d.journal.recordUndo(func() { d.Left = left })
	}
	d.Left++
}

// recordUndo records how to restore all counts.
func (d *demand) recordUndo() {
	was := d.Demand.copied()
	d.journal.recordUndo(func() { d.restore(was) })
}

// restore sets the counts.
func (d *demand) restore(to Demand) {
	*d = newDemand(d.journal)
	d.Demand = to
	sortRequests(d.Requests)
	sortRequests(d.Learnt)
	for i := range d.Requests {
		d.sum += d.Requests[i].Weight
	}
}

// sortRequests sorts the requests by their keys.
func sortRequests(list []Requested) {
	for i := range list {
		if r := &list[i]; r.key == "" {
			r.key = string(r.appendKey(nil))
		}
	}
	slices.SortFunc(list, func(a, b Requested) int { return strings.Compare(a.key, b.key) })
}

// copied returns a copy that shares nothing that changes.
func (d *Demand) copied() Demand {
	c := *d
	c.Requests, c.Learnt = slices.Clone(d.Requests), slices.Clone(d.Learnt)
	return c
}

// find returns the index of the request of the shape in Requests.
func (d *demand) find(s *Shape) int {
	if i, known := d.byShape[s]; known {
		return i
	}
	r := Requested{Resources: s.Resources, Need: s.Need}
	d.key = r.appendKey(d.key[:0])
	i, known := slices.BinarySearchFunc(d.Requests, d.key, func(r Requested, key []byte) int { return strings.Compare(r.key, string(key)) })
	if !known {
		r.key = string(d.key)
		d.Requests = slices.Insert(d.Requests, i, r)
		clear(d.byShape) // the indexes have changed
	}
	if len(d.byShape) >= maxRequests {
		clear(d.byShape)
	}
	d.byShape[s] = i
	return i
}

// halve halves all weights, and forgets requests with the weight 0.
func (d *demand) halve() {
	to := d.Demand
	to.Requests = make([]Requested, 0, len(d.Requests))
	for _, r := range d.Requests {
		if r.Weight /= 2; r.Weight > 0 {
			to.Requests = append(to.Requests, r)
		}
	}
	d.restore(to)
}

// appendKey appends the encoding of the request.
func (r *Requested) appendKey(key []byte) []byte {
	w := keyWriter(key)
	w.amounts(r.Resources)
	r.Need.encode(&w)
	return w
}

func (d *demand) clone(l *journal) demand {
	c := newDemand(l)
	c.restore(d.Demand.copied())
	return c
}

// check returns an error for counts that State cannot have made.
func (d *Demand) check() error {
	if d.Arrived < 0 || d.Left < 0 {
		return fmt.Errorf("demand: arrived and left must not be negative, have %d and %d", d.Arrived, d.Left)
	}
	if d.LearntAt < 0 || d.LearntAt > d.Arrived || (d.LearntAt == 0) != (len(d.Learnt) == 0) {
		return fmt.Errorf("demand: learntAt is %d with %d learnt requests and %d arrivals", d.LearntAt, len(d.Learnt), d.Arrived)
	}
	return cmp.Or(checkRequests("requests", d.Requests), checkRequests("learnt", d.Learnt))
}

func checkRequests(field string, list []Requested) error {
	if len(list) > maxRequests {
		return fmt.Errorf("demand: %s has %d entries; want at most %d", field, len(list), maxRequests)
	}
	sum, keys := int64(0), map[string]bool{}
	for i := range list {
		r := &list[i]
		shape := Shape{Resources: r.Resources, Need: r.Need}
		if err := shape.check(); err != nil {
			return fmt.Errorf("demand: %s[%d]: %w", field, i, err)
		}
		key := string(r.appendKey(nil))
		if keys[key] {
			return fmt.Errorf("demand: %s[%d] is listed twice", field, i)
		}
		keys[key] = true
		if r.Weight < 1 || r.Weight > maxDemand || sum > maxDemand-r.Weight {
			return fmt.Errorf("demand: %s[%d]: weights must be at least 1, and at most %d together", field, i, maxDemand)
		}
		sum += r.Weight
	}
	return nil
}

// Demand returns what tasks that arrived have requested. It must not be changed.
func (v View) Demand() *Demand { return &v.state.demand.Demand }
