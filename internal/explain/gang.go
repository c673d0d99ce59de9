package explain

import (
	"fmt"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/wire"
)

// neededText returns "placed 3 of 4 needed in workers": how many tasks of the minimum were
// placed, and of which subgroup.
func neededText(a *engine.Attempt) string {
	text := fmt.Sprintf("placed %d of %d needed", a.Placed, a.Min)
	if a.Subgroup != "" {
		text += " in " + a.Subgroup
	}
	return text
}

// LevelName returns the name of a topology label without its prefix: "rack".
func LevelName(label string) string { return label[strings.LastIndexByte(label, '/')+1:] }

// domainsText returns how much room the best domain has, and how many nodes it lacks.
func domainsText(a *engine.Attempt) string {
	text := ""
	if a.Subgroup != "" {
		text = a.Subgroup + " "
	}
	text += fmt.Sprintf("needs %d in one %s: ", a.Min, LevelName(a.Level))
	if len(a.Domains) == 0 {
		if a.Placed > 0 {
			return text + fmt.Sprintf("the %d that are placed are not in one", a.Placed)
		}
		return text + "no node has the label " + a.Level
	}
	best := &domainsOf(a)[0]
	text += fmt.Sprintf("the best, %s, has room for %d", best.Value, best.Fits)
	if best.Lacks > 0 {
		text += "; " + lacksText(best.Lacks)
	}
	return text
}

func lacksText(nodes int) string {
	return english.Count(nodes, "node") + ifOne(nodes, " is", " are") + " missing"
}

// apartText returns how many tasks can ever be placed in different domains of the level.
func apartText(level string, needed, most int) string {
	where := "in a " + LevelName(level) + " of its own"
	if level == "" || level == hostname {
		where = "on a node of its own"
	}
	return fmt.Sprintf("each of the %d tasks needed must be %s, and at most %d can ever be placed", needed, where, most)
}

// hostname is the label of Kubernetes that has another value on each node.
const hostname = "kubernetes.io/hostname"

// domainsOf returns the domains, the best first. Those that are equally good are sorted by name.
func domainsOf(a *engine.Attempt) []engine.DomainMiss {
	return NaturalRuns(a.Domains, func(d *engine.DomainMiss) string { return d.Value }, func(x, y *engine.DomainMiss) bool {
		return x.Nodes == y.Nodes && x.Fits == y.Fits && x.Lacks == y.Lacks
	})
}

// domainLines returns a line for each domain, the best first.
func domainLines(a *engine.Attempt) []string {
	var out []string
	for _, d := range domainsOf(a) {
		line := fmt.Sprintf("− %s (%s)  room for %d of %d", d.Value, english.Count(d.Nodes, "node"), d.Fits, a.Min)
		if d.Lacks > 0 {
			line += ", " + lacksText(d.Lacks)
		}
		out = append(out, line)
	}
	return out
}

// topologyText returns in which domains the tasks must or should be together, beginning with a
// comma; "" if there is no such condition.
func topologyText(t *cluster.Topology) string {
	text := ""
	if t.Required != "" {
		text = ", all in one " + LevelName(t.Required)
	}
	if len(t.Preferred) > 0 {
		text += ", if possible in one " + strings.Join(wire.Map(t.Preferred, LevelName), ", else in one ")
	}
	return text
}

// subgroupsText returns the minimums and topologies of the subgroups.
func subgroupsText(alt *cluster.Alternative) string {
	text := ""
	for i := range alt.Subgroups {
		g := &alt.Subgroups[i]
		tasks := 0
		for _, t := range alt.Tasks {
			if t.Subgroup == i+1 {
				tasks++
			}
		}
		near := topologyText(&g.Topology)
		switch {
		case g.Min > 0 && g.Min < tasks:
			text += fmt.Sprintf(", at least %d of %s%s", g.Min, g.Name, near)
		case near != "":
			text += ", " + g.Name + strings.TrimPrefix(near, ",")
		}
	}
	return text + neededSubgroupsText(alt)
}

// neededSubgroupsText returns how many subgroups must reach their minimum, at each level of
// nesting at which not all must.
func neededSubgroupsText(alt *cluster.Alternative) string {
	const most = 6
	text := ""
	for outer := 0; outer <= len(alt.Subgroups); outer++ {
		var inside []string
		for i := range alt.Subgroups {
			if alt.Subgroups[i].Parent == outer {
				inside = append(inside, alt.Subgroups[i].Name)
			}
		}
		if needed := alt.Needed(outer); needed < len(inside) {
			text += fmt.Sprintf(", at least %d of the subgroups %s", needed, List(inside, most))
		}
	}
	return text
}
