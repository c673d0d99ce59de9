package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// trialSteps is how many allocations may be tried, over all domains, for one alternative. It
// is a number of steps and not a time, so that decisions are the same on every machine.
const trialSteps = 5_000

// maxScopeLists is how many domains of a preferred level are tried. The first is nearly always
// right: the sums by which domains are chosen leave out only task-form filters and the way in
// which parts of devices are divided.
const maxScopeLists = 16

// domainMisses is how many domains a refusal lists.
const domainMisses = 10

// arrange chooses a domain for the job and places its minimum there. It returns why that
// failed, or nil.
func (g *gang) arrange() *Attempt {
	if g.alt.Topology.None() || len(g.left) == 0 {
		g.job.scopeList = everywhere
		if g.in != nil {
			g.job.scopeList = []*scope{g.in}
		}
		return g.minimum()
	}
	hasMinimum := g.needs() == 0
	a := g.chooseDomain(g.demand(0), &g.alt.Topology, []*scope{g.in}, (*gang).minimum)
	if a != nil && hasMinimum { // the minimum is placed already, and only surplus has no room
		g.job.scopeList = []*scope{}
		g.fail(a)
		return nil
	}
	return a
}

// chooseSubgroupDomain chooses a domain for a subgroup that has a topology of its own, inside the domain of
// the subgroup or job that contains it, and places there what its minimum needs.
func (g *gang) chooseSubgroupDomain(sub int) *Attempt {
	d := g.demand(sub)
	return g.chooseDomain(d, &g.alt.Subgroups[sub-1].Topology, g.around(sub).scopeList, func(g *gang) *Attempt {
		if g.alt.Nested() {
			return g.fillGroup(sub)
		}
		for range d.need {
			i := slices.IndexFunc(g.left, func(t *cluster.Task) bool { return t.Subgroup == sub && g.hopeful(t) })
			for i >= 0 && !g.take(i) {
				i = slices.IndexFunc(g.left, func(t *cluster.Task) bool { return t.Subgroup == sub && g.hopeful(t) })
			}
			if i < 0 || g.placer.fault.err != nil {
				return g.miss()
			}
		}
		return nil
	})
}

// chooseDomain tries to place the demand in one domain after the other and keeps the first in
// which that works. Each attempt is made with a copy of the gang. It returns why no domain
// works, or nil.
func (g *gang) chooseDomain(d *demand, topology *cluster.Topology, within []*scope, try func(*gang) *Attempt) *Attempt {
	attempt := func(scopeList []*scope, quiet bool) *Attempt {
		mark, next := g.stmt.Checkpoint(), g.copy()
		next.quiet = quiet
		next.partOf(d.sub).scopeList = scopeList
		a := try(next)
		if a != nil && quiet && g.placer.fault.err == nil {
			g.stmt.Rollback(mark)
			g.steps = next.steps // attempts that were rolled back count as well
			return a
		}
		next.quiet = g.quiet
		*g = *next
		return a
	}
	if topology.Required == "" {
		scopeLists := g.scopeLists(within, topology.Preferred, d)
		last := len(scopeLists) - 1
		for _, scopeList := range scopeLists[:last] {
			if g.steps <= 0 || g.placer.fault.err != nil {
				break
			}
			if attempt(scopeList, true) == nil {
				return nil
			}
		}
		return attempt(scopeLists[last], g.quiet)
	}
	domains := g.required(within, topology.Required, d)
	for i := range domains {
		c := &domains[i]
		if c.fits < d.need {
			continue
		}
		for _, scopeList := range g.scopeLists([]*scope{c.scope}, topology.Preferred, d) {
			if g.steps <= 0 || g.placer.fault.err != nil {
				break
			}
			if attempt(scopeList, true) == nil {
				return nil
			}
		}
		c.fits = d.need - 1 // the sums were too optimistic: the domain has no room for the minimum
	}
	if g.quiet || g.placer.fault.err != nil {
		return &Attempt{Task: unplaced(d.shapes[0])}
	}
	return g.explainNoDomain(topology.Required, domains, d, func(scopeList []*scope) *Attempt { return attempt(scopeList, false) })
}

// required returns the domains of the required level in which the demand may be placed, best
// first: domains that hold all tasks, those with the least room to spare first, then those
// that hold most. If tasks are placed already, only their domain is returned.
func (g *gang) required(within []*scope, level string, d *demand) []candidate {
	var out []candidate
	for _, in := range within {
		for _, c := range g.candidates(in, level, d) {
			if c.here {
				out = append(out, c)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b candidate) int {
		if a.all && b.all {
			return cmp.Compare(a.spare, b.spare)
		}
		return cmp.Or(trueFirst(a.all, b.all), cmp.Compare(b.fits, a.fits))
	})
	return out
}

// scopeLists returns lists of scopes to be tried one after the other. Tasks are placed in the
// first scope of a list that has room. The lists use as few domains of the preferred levels as
// possible: first one domain, of the narrowest level that has one with enough room, then
// several domains, and at last the scopes without any preference.
func (g *gang) scopeLists(within []*scope, preferred []string, d *demand) [][]*scope {
	if len(preferred) == 0 {
		return [][]*scope{within}
	}
	var out [][]*scope
	var last []*scope
	for _, in := range within {
		for i, level := range preferred {
			one := slices.DeleteFunc(g.candidates(in, level, d), func(c candidate) bool { return !c.all || !c.here })
			slices.SortStableFunc(one, func(a, b candidate) int { return cmp.Compare(a.spare, b.spare) })
			for _, c := range one[:min(len(one), maxScopeLists)] {
				out = append(out, g.fillOrder(c.scope, preferred[:i], d, len(d.tasks)))
			}
		}
		last = append(last, g.fillOrder(in, preferred, d, len(d.tasks))...)
	}
	return append(out, last, within)
}

// fillOrder returns the domains of the levels in an order in which the tasks use as few of them
// as possible. It begins with the widest level: domains that have tasks of the job come first,
// then the largest, and for the remaining tasks the smallest domain that holds them. The scope
// itself comes last, for nodes that are in no domain and for room that the sums do not show.
func (g *gang) fillOrder(in *scope, levels []string, d *demand, want int) []*scope {
	if len(levels) == 0 {
		return []*scope{in}
	}
	narrower := levels[:len(levels)-1]
	domains := slices.DeleteFunc(g.candidates(in, levels[len(narrower)], d), func(c candidate) bool { return c.fits == 0 })
	slices.SortStableFunc(domains, func(a, b candidate) int {
		return cmp.Or(trueFirst(a.used, b.used), cmp.Compare(b.fits, a.fits))
	})
	var out []*scope
	for len(domains) > 0 {
		pick := 0
		for i := range domains { // the last domain that holds the rest has the least room to spare
			if c := &domains[i]; want > 0 && c.fits >= want && c.used == domains[0].used && c.fits < domains[pick].fits {
				pick = i
			}
		}
		c := domains[pick]
		out = append(out, g.fillOrder(c.scope, narrower, d, min(want, c.fits))...)
		want -= min(want, c.fits)
		domains = slices.Delete(domains, pick, pick+1)
	}
	return append(out, in)
}

// explainNoDomain returns why no domain of the level has room for the demand. To find out, it
// tries the best domain again; it returns nil if that works.
func (g *gang) explainNoDomain(level string, domains []candidate, d *demand, attempt func([]*scope) *Attempt) *Attempt {
	p, first, there := g.placer, d.shapes[0], len(d.there)
	if a := p.finder.before(first); a != nil {
		a.Alternative, a.Placed, a.Min = g.alt.Name, there, there+d.need
		return a
	}
	d.look(p.finder)
	possible := slices.ContainsFunc(domains, func(c candidate) bool {
		fits, _, _ := d.held(c.scope.nodes, d.ever)
		most, _, _ := p.explainer.apart(first.Job, c.scope.nodes, p.explainer.capacityOfAnyShape(slices.Concat(d.there, d.tasks), c.scope))
		return fits >= d.need && most >= there+d.need
	})
	if !possible && there == 0 {
		// If no node of the cluster could take the task, the topology is not the reason.
		if a := p.explain(g.alt, first, g.in); !a.transient() && rejectedNodes(a) == a.Nodes {
			a.Alternative, a.Placed, a.Min = g.alt.Name, there, there+d.need
			return a
		}
	}
	slices.SortStableFunc(domains, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.fits, a.fits), strings.Compare(a.scope.value(), b.scope.value()))
	})
	a := &Attempt{Task: unplaced(first), Nodes: len(p.finder.members(g.in))}
	if len(domains) > 0 {
		switch got := attempt([]*scope{domains[0].scope}); {
		case got == nil:
			return nil
		case got.Before != nil || got.Level != "":
			return got
		default:
			a = got
		}
	}
	if !possible {
		g.alone = nil // the sums show that there is no room, whatever the exact search finds
	}
	a.Alternative, a.Level, a.Never, a.Placed, a.Min = g.alt.Name, level, !possible || a == g.alone, there, there+d.need
	if d.sub > 0 {
		a.Subgroup = g.alt.Subgroups[d.sub-1].Name
	}
	for i, c := range domains {
		if i == domainMisses {
			break
		}
		if i == 0 {
			a.Placed += c.fits
		}
		a.Domains = append(a.Domains, DomainMiss{c.scope.value(), len(c.scope.nodes), there + c.fits, d.lacks(c, a.Task.Shape)})
	}
	return a
}

// rejectedNodes returns how many nodes were rejected in the attempt.
func rejectedNodes(a *Attempt) int {
	sum := 0
	for _, c := range a.Counts {
		sum += c.Nodes
	}
	return sum
}
