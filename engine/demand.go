package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// demand is the tasks of a job or subgroup that are to be placed in one domain.
type demand struct {
	sub      int // the number of the subgroup, from 1; 0 for the job
	tasks    []*cluster.Task
	shapes   []*cluster.Task // one task of each shape
	counts   []int           // by index in shapes: how many of the tasks have the shape
	need     int             // how many of the tasks the minimum lacks
	there    []*cluster.Task // the tasks of the job or subgroup that are placed already
	verdicts []func(*cluster.Node) (rejected, transient bool)
}

// candidate is a domain with an upper bound of how much of a demand it has room for. The
// bound is a sum over nodes and shapes, which is much cheaper than trying a placement.
type candidate struct {
	scope *scope
	fits  int  // how many tasks have room
	all   bool // the tasks of each shape have room, shape by shape
	spare int  // for how many more tasks there is room
	here  bool // all placed tasks are in the domain
	used  bool // at least one placed task is in the domain
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

// look prepares the verdicts of the filters on nodes as they are now.
func (d *demand) look(f *finder) {
	d.verdicts = d.verdicts[:0]
	for _, t := range d.shapes {
		d.verdicts = append(d.verdicts, f.verdicts(t))
	}
}

// fitsNow returns an upper bound of how many tasks of the i-th shape fit on the node now. If
// the demand has several shapes, placing a task of one may cure the rejection of another,
// so a rejection that waiting cures does not count.
func (d *demand) fitsNow(i int, n *cluster.Node) int {
	if rejected, transient := d.verdicts[i](n); rejected && (!transient || len(d.shapes) == 1) {
		return 0
	}
	return n.Room(d.shapes[i].Shape)
}

// ever returns an upper bound of how many tasks of the i-th shape would fit on the node if it
// were empty.
func (d *demand) ever(i int, n *cluster.Node) int {
	if rejected, transient := d.verdicts[i](n); rejected && !transient {
		return 0
	}
	return n.Most(d.shapes[i].Shape)
}

// held adds up, over the nodes, for how many tasks of each shape there is room.
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

// candidates returns the domains of the level in the scope, ordered by the value of the
// label.
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

// lacks returns how many more nodes the domain would need, if each of them were as large as
// its largest node.
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
