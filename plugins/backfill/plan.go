package backfill

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// delay is how long a job is expected to wait for a node: until tasks of unknown run time have
// ended, and at least until the time.
type delay struct {
	unknown   int   // how many tasks of unknown run time must end
	remaining int64 // how long these are expected to run yet, together; see plugin.remaining
	until     int64 // the latest end of the tasks with known run times; now if none must end
	// keepsNothing is set if nothing of the room is free and the end of one task frees all of it: an earmark
	// keeps no device idle, and decides only which job gets the room then.
	keepsNothing bool
}

func (d delay) compare(o delay) int {
	return cmp.Or(cmp.Compare(d.remaining, o.remaining), cmp.Compare(d.until, o.until))
}

// add returns the delay of a job that waits for two nodes.
func (d delay) add(o delay) delay {
	return delay{unknown: d.unknown + o.unknown, remaining: d.remaining + o.remaining, until: max(d.until, o.until)}
}

// room is room of a node that a job may get, and how long it is expected to wait for it.
type room struct {
	cluster.EarmarkedRoom
	delay delay
}

// plan chooses the nodes on which the job is expected to start soonest, in the first alternative
// for which there are enough. It returns nil if there are none.
func (p *plugin) plan(j *cluster.Job) *cluster.Earmarked {
	for i := range j.Alternatives {
		alt := &j.Alternatives[i]
		if j.Chosen >= 0 && i != j.Chosen || alt.Running {
			continue
		}
		lacks := p.session.Lacking(alt)
		if !slices.ContainsFunc(lacks, func(t *cluster.Task) bool { return !t.Shape.Need.None() }) {
			continue
		}
		if rooms := p.best(j, alt, lacks); rooms != nil {
			return p.earmark(rooms)
		}
	}
	return nil
}

// earmark returns the rooms as an earmark.
func (p *plugin) earmark(rooms []room) *cluster.Earmarked {
	now := p.session.Now
	e := &cluster.Earmarked{Since: now, Reviewed: now}
	total := delay{until: now}
	for _, r := range rooms {
		total = total.add(r.delay)
		e.Rooms = append(e.Rooms, r.EarmarkedRoom)
	}
	if total.unknown == 0 {
		e.Start = total.until
	}
	slices.SortFunc(e.Rooms, func(a, b cluster.EarmarkedRoom) int { return strings.Compare(a.Node, b.Node) })
	return e
}

// best returns the rooms on which the tasks are expected to start soonest: in one domain if the
// alternative requires one, and of one node group if it requests whole nodes.
func (p *plugin) best(j *cluster.Job, alt *cluster.Alternative, lacks []*cluster.Task) []room {
	domains := map[string][]*cluster.Node{}
	var names []string
	for _, n := range p.session.View.Nodes() {
		name, ok := "", true
		switch {
		case alt.Topology.Required != "":
			name, ok = n.Domain(alt.Topology.Required)
		case alt.Whole != nil:
			if ok = n.Group() != nil; ok {
				name = n.Group().Key.Product
			}
		}
		if of := cluster.EarmarksOf(p.session.View).On(n); !ok || of != nil && of.Job != j.ID {
			continue
		}
		if domains[name] == nil {
			names = append(names, name)
		}
		domains[name] = append(domains[name], n)
	}
	var best []room
	var soonest delay
	for _, name := range names {
		rooms := p.soonest(j, domains[name], lacks)
		if rooms == nil {
			continue
		}
		total := delay{}
		for _, r := range rooms {
			total = total.add(r.delay)
		}
		if best == nil || total.compare(soonest) < 0 {
			best, soonest = rooms, total
		}
	}
	return best
}

// soonest chooses rooms for the tasks among the nodes: for the tasks of each shape, the nodes with
// the least delays, and only nodes on which the earmark keeps nothing idle if the limit is reached. As long as it
// is not, a node that one task of unknown run time holds as a whole is the last choice for one task. It returns
// nil if the nodes do not suffice.
func (p *plugin) soonest(j *cluster.Job, nodes []*cluster.Node, lacks []*cluster.Task) (out []room) {
	spent, alone := p.spent(j), len(lacks) == 1
	taken := map[*cluster.Node]bool{}
	for len(lacks) > 0 {
		shape := lacks[0].Shape
		var same, others []*cluster.Task
		for _, t := range lacks {
			if t.Shape == shape {
				same = append(same, t)
			} else {
				others = append(others, t)
			}
		}
		type choice struct {
			room
			node  *cluster.Node
			tasks int
		}
		var choices []choice
		for _, n := range nodes {
			if most := min(n.Most(shape), len(same)); most > 0 && !taken[n] {
				r := roomFor(shape, most, n)
				if !p.session.Earmarks.Attainable(r.EarmarkedRoom) {
					continue
				}
				r.delay = p.delayOn(n, &r.EarmarkedRoom)
				if spent && !r.delay.keepsNothing {
					continue
				}
				if p.left[n.Name] {
					r.delay.remaining /= 2
				}
				choices = append(choices, choice{r, n, most})
			}
		}
		slices.SortFunc(choices, func(a, b choice) int {
			if x, y := alone && a.delay.keepsNothing && a.delay.unknown > 0, alone && b.delay.keepsNothing && b.delay.unknown > 0; x != y {
				return trueLast(x)
			}
			return cmp.Or(a.delay.compare(b.delay), strings.Compare(a.Node, b.Node))
		})
		fits, left := p.session.Earmarks.WhenEmpty(same[0]), len(same)
		for _, c := range choices {
			if left <= 0 {
				break
			}
			if fits(c.node) >= c.tasks {
				taken[c.node] = true
				out, left = append(out, c.room), left-c.tasks
			}
		}
		if left > 0 {
			return nil
		}
		lacks = others
	}
	return out
}

// trueLast returns how the first of two different booleans compares if true is after false.
func trueLast(first bool) int {
	if first {
		return 1
	}
	return -1
}

// roomFor returns the room that tasks of the shape need on the node.
func roomFor(s *cluster.Shape, tasks int, n *cluster.Node) room {
	r := room{EarmarkedRoom: cluster.EarmarkedRoom{Node: n.Name, Devices: tasks * s.Need.Devices}}
	if s.Need.WholeNode {
		r.Devices = len(n.Devices)
	}
	for _, a := range s.Resources {
		if a.Value > 0 {
			r.Resources = append(r.Resources, cluster.Amount{Name: a.Name, Value: a.Value * int64(tasks)})
		}
	}
	return r
}

// expected returns the delay of the job with the earmark.
func (p *plugin) expected(j *cluster.Job, e *cluster.Earmarked) delay {
	total := delay{until: p.session.Now}
	for i := range e.Rooms {
		if n := p.session.View.Node(e.Rooms[i].Node); n != nil {
			total = total.add(p.delayOn(n, &e.Rooms[i]))
		}
	}
	return total
}

// muchSooner reports whether a job should leave nodes with the delay o for nodes with the delay d,
// which both begin now: the tasks of unknown run time are expected to run for at most half as long
// or, if there are none, it takes at most half of the time.
func (d delay) muchSooner(o delay, now int64) bool {
	if o.unknown == 0 {
		return d.unknown == 0 && o.until > now && 2*(d.until-now) <= o.until-now
	}
	return 2*d.remaining <= o.remaining
}

// remaining returns how long a task of unknown run time is expected to run yet: the mean of its age
// and of the mean age of all running tasks. At a random time, a running task has on average as much
// of its run time before it as behind it. Run times differ by orders of magnitude, so that a task
// that has run for long is expected to run for longer than one that has just started.
func (p *plugin) remaining(t *cluster.Task) int64 {
	if p.meanAge < 0 {
		sum, count := 0.0, 0.0
		for _, n := range p.session.View.Nodes() {
			for _, o := range n.Tasks {
				if o.Runs() && o.Started > 0 && len(o.Claims) > 0 {
					sum, count = sum+float64(p.session.Now-o.Started), count+1
				}
			}
		}
		p.meanAge = int64(max(1, sum/max(1, count)))
	}
	age := p.meanAge
	if t.Started > 0 {
		age = max(0, p.session.Now-t.Started)
	}
	return max(1, (age+p.meanAge)/2)
}

// holder is a task that holds room of a node, and when it ends; 0: that is not known, also because
// it has run for longer than its run time.
type holder struct {
	task *cluster.Task
	ends int64
}

// delayOn returns how long the room of the node is expected to be held. Tasks of known run times
// end first, in the order of their ends, and then those that are expected to end soonest.
func (p *plugin) delayOn(n *cluster.Node, r *cluster.EarmarkedRoom) delay {
	now := p.session.Now
	out := delay{until: now}
	held := make([]holder, 0, len(n.Tasks))
	for _, t := range n.Tasks {
		if !t.KeepsRoom() {
			continue
		}
		h := holder{task: t}
		if t.Job.RunFor > 0 && t.Started > 0 && t.Started+t.Job.RunFor >= now {
			h.ends = t.Started + t.Job.RunFor
		}
		held = append(held, h)
	}
	slices.SortFunc(held, func(a, b holder) int {
		if (a.ends == 0) != (b.ends == 0) {
			return cmp.Compare(b.ends, a.ends)
		}
		return cmp.Or(cmp.Compare(a.ends, b.ends), cmp.Compare(b.task.Started, a.task.Started), strings.Compare(a.task.ID, b.task.ID))
	})
	l, ends := newLack(n, r), 0
	idle := r.Devices > l.devices
	for _, h := range held {
		if l.none() {
			break
		}
		if !l.release(h.task) {
			continue
		}
		ends++
		if h.ends > 0 {
			out.until = max(out.until, h.ends)
		} else {
			out.unknown++
			out.remaining += p.remaining(h.task)
		}
	}
	out.keepsNothing = ends == 1 && !idle
	return out
}
