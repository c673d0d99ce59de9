package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// demand is what a domain is asked to hold.
type demand struct {
	sub      int // the subgroup, counted from 1; 0: the job
	tasks    []*cluster.Task
	shapes   []*cluster.Task // one task of each shape
	counts   []int           // tasks of each shape
	need     int             // how many of the tasks the minimum lacks
	there    []*cluster.Task // who is placed already
	verdicts []func(*cluster.Node) (rejected, transient bool)
}

// candidate is a domain and how much of the demand it holds, at most: sums first,
// search last.
type candidate struct {
	scope *scope
	fits  int  // tasks
	all   bool // of each shape, as many as there are
	spare int  // what would be left over of its room
	here  bool // all who are placed already are in it
	used  bool // some are
}

// demand sums up the tasks of the subgroup, or of the job.
func (g *gang) demand(sub int) *demand {
	d := &demand{sub: sub, need: g.needs()}
	if sub > 0 {
		d.need = max(1, g.short(sub))
	}
	for _, t := range g.alt.Tasks {
		if t.Placed() && (sub == 0 || g.alt.In(t.Subgroup, sub)) {
			d.there = append(d.there, t)
		}
	}
	for _, t := range g.left {
		if sub > 0 && !g.alt.In(t.Subgroup, sub) {
			continue
		}
		d.tasks = append(d.tasks, t)
		i := slices.IndexFunc(d.shapes, func(o *cluster.Task) bool { return o.Shape == t.Shape })
		if i < 0 {
			i = len(d.shapes)
			d.shapes, d.counts = append(d.shapes, t), append(d.counts, 0)
		}
		d.counts[i]++
	}
	d.need = min(d.need, len(d.tasks))
	return d
}

// look takes in what the filters say of nodes as they are now.
func (d *demand) look(f *finder) {
	d.verdicts = d.verdicts[:0]
	for _, t := range d.shapes {
		d.verdicts = append(d.verdicts, f.verdicts(t))
	}
}

// room is how many tasks of the i-th shape the node takes now, at most. Where
// shapes mix, one may make the way free for another, so what waiting cures is no no.
func (d *demand) fitsNow(i int, n *cluster.Node) int {
	if rejected, transient := d.verdicts[i](n); rejected && (!transient || len(d.shapes) == 1) {
		return 0
	}
	return n.Room(d.shapes[i].Shape)
}

// ever is how many it would take if it were empty.
func (d *demand) ever(i int, n *cluster.Node) int {
	if rejected, transient := d.verdicts[i](n); rejected && !transient {
		return 0
	}
	return n.Most(d.shapes[i].Shape)
}

// held adds up, over the nodes, how many tasks of each shape have room.
func (d *demand) held(nodes []*cluster.Node, room func(int, *cluster.Node) int) (fits int, all bool, spare int) {
	all = true
	for i, most := range d.counts {
		sum := 0
		for _, n := range nodes {
			sum += room(i, n)
		}
		fits += min(sum, most)
		all = all && sum >= most
		spare += sum - most
	}
	return fits, all, spare
}

// candidates are the domains of a level in the scope, by value.
func (g *gang) candidates(in *scope, level string, d *demand) []candidate {
	d.look(g.placer.finder)
	domains := g.placer.finder.split(in, level)
	out := make([]candidate, 0, len(domains))
	for _, dom := range domains {
		c := candidate{scope: dom, here: true}
		c.fits, c.all, c.spare = d.held(dom.nodes, d.fitsNow)
		for _, t := range d.there {
			in := dom.has(t.At())
			c.here, c.used = c.here && in, c.used || in
		}
		out = append(out, c)
	}
	return out
}

// lacks is how many nodes the domain is short of, each as large as its largest.
func (d *demand) lacks(c candidate, shape *cluster.Shape) int {
	i := slices.IndexFunc(d.shapes, func(o *cluster.Task) bool { return o.Shape == shape })
	per := 0
	for _, n := range c.scope.nodes {
		per = max(per, d.ever(max(i, 0), n))
	}
	if per == 0 {
		return 0
	}
	return (d.need - c.fits + per - 1) / per
}
