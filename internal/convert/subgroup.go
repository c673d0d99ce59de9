package convert

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/nearest"
	"github.com/berth-project/berth/internal/phrase"
)

// inherit sets the subgroups of the alternative to those of the job if it has no subgroups,
// and then also minSubgroups if the alternative does not set it. It sets the topology to that of
// the job if the alternative has no topology. It returns the paths at which the subgroups and
// the topology are written.
func (m *jobMaker) inherit(a *v1alpha1.Alternative, at path) (subgroups, topology path) {
	subgroups, topology = at.Add("subgroups"), at.Add("topology")
	if len(a.Subgroups) == 0 {
		a.Subgroups, subgroups = m.job.Spec.Subgroups, path{"spec", "subgroups"}
		if a.MinSubgroups == nil {
			a.MinSubgroups = m.job.Spec.MinSubgroups
		}
	}
	if a.Topology == nil {
		a.Topology, topology = m.job.Spec.Topology, path{"spec", "topology"}
	}
	return subgroups, topology
}

// makeSubgroups makes the subgroups of the alternative and sets its topology. It reports
// whether what is written is valid.
func (m *jobMaker) makeSubgroups(a *v1alpha1.Alternative, at path, p *layout) bool {
	subgroupsAt, topologyAt := m.inherit(a, at)
	if p.whole != nil {
		const remedy = "unit %s takes any whole nodes of one group and all replicas together; leave %s out, or leave the unit out and ask for the devices of a node"
		if len(a.Subgroups) > 0 {
			m.r.errorf(subgroupsAt, remedy, unitNode, "subgroups")
		}
		if a.Topology != nil {
			m.r.errorf(topologyAt, remedy, unitNode, "topology")
		}
		return len(a.Subgroups) == 0 && a.Topology == nil
	}
	p.topology = makeTopology(a.Topology, topologyAt, m.r)
	ok := true
	names, roles := map[string]int{}, map[string]*role{}
	for k := range p.roles {
		roles[p.roles[k].name] = &p.roles[k]
	}
	for i := range a.Subgroups {
		g, at := &a.Subgroups[i], subgroupsAt.Add(i)
		if checkNameAt(g.Name, "subgroup", at.Add("name"), m.r) {
			if j, twice := names[g.Name]; twice {
				m.r.errorf(at.Add("name"), "subgroup %s is already subgroups[%d]; give it another name, or merge the two", phrase.Quote(g.Name), j)
			}
			names[g.Name] = i
		}
		members, fine := m.addMembers(a, i, at, roles)
		ok = ok && fine
		least := members
		if g.MinMember != nil && fine {
			switch least = *g.MinMember; {
			case least < 0:
				m.r.errorf(at.Add("minMember"), "want at least 0, have %d", least)
				ok = false
			case least > members:
				m.r.errorf(at.Add("minMember"), "%d of only %d tasks in the subgroup; lower it or add replicas", least, members)
				ok = false
			}
		}
		p.subgroups = append(p.subgroups, cluster.Subgroup{Name: g.Name, Min: least, Topology: makeTopology(g.Topology, at.Add("topology"), m.r)})
	}
	return m.nestSubgroups(a, at, subgroupsAt, p) && ok
}

// addMembers assigns the tasks that subgroup i lists to it, and returns how many they
// are. It reports false if the list is not valid.
func (m *jobMaker) addMembers(a *v1alpha1.Alternative, i int, at path, roles map[string]*role) (int, bool) {
	g := &a.Subgroups[i]
	if len(g.Tasks) == 0 && slices.ContainsFunc(a.Subgroups, func(o v1alpha1.Subgroup) bool { return o.Parent == g.Name }) {
		return 0, true
	}
	if len(g.Tasks) == 0 {
		m.r.errorf(at.Add("tasks"), "say which tasks are in the subgroup, such as [%s]", phrase.Clip(a.Tasks[0].Name))
		return 0, false
	}
	owner := "the job"
	if len(m.job.Spec.Alternatives) > 0 {
		owner = "alternative " + phrase.Quote(a.Name)
	}
	count, ok := 0, true
	for k, name := range g.Tasks {
		at, r := at.Add("tasks", k), roles[name]
		switch {
		case r == nil:
			m.r.errorf(at, "%s has no task %s%s", owner, phrase.Quote(name), nearest.Hint(name, taskNames(a)))
			ok = false
		case r.subgroup == i+1:
			m.r.errorf(at, "task %s is already listed; leave it out", phrase.Quote(name))
			ok = false
		case r.subgroup > 0:
			m.r.errorf(at, "task %s is already in subgroup %s; a task is in one subgroup at most", phrase.Quote(name), phrase.Quote(a.Subgroups[r.subgroup-1].Name))
			ok = false
		default:
			r.subgroup = i + 1
			count += r.count
		}
	}
	return count, ok
}

// taskNames returns the names of tasks from which a suggestion is chosen.
func taskNames(a *v1alpha1.Alternative) []string {
	const compared = 1000 // comparing more names would take too long
	var out []string
	for i := range a.Tasks[:min(len(a.Tasks), compared)] {
		out = append(out, a.Tasks[i].Name)
	}
	return out
}

// minimum returns how many tasks must be placed before any of them starts: minMember, or else
// the sum of the minimums of the needed subgroups and of all tasks outside subgroups, but at
// least 1. If only some subgroups are needed, those with the smallest sum count. It reports
// false if what is written is not valid.
func (m *jobMaker) minimum(a *v1alpha1.Alternative, at path, p *layout) (int, bool) {
	alt := cluster.Alternative{Subgroups: p.subgroups, MinSubgroups: p.minSubgroups}
	minima := alt.LeastSum(func(sub int) int { return p.subgroups[sub-1].Min })
	members := make([]int, len(p.subgroups)+1)
	for i := range p.roles {
		members[p.roles[i].subgroup] += p.roles[i].count
	}
	loose := members[0]
	fewest := loose + alt.LeastSum(func(sub int) int { return members[sub] })
	if a.MinMember == nil {
		return max(1, minima+loose), true
	}
	least, problem := *a.MinMember, ""
	switch {
	case least < 1:
		problem = fmt.Sprintf("want at least 1, have %d", least)
	case least > p.total:
		problem = fmt.Sprintf("%d of only %d tasks; lower it or add replicas", least, p.total)
	case p.whole != nil && least < p.total:
		problem = fmt.Sprintf("unit %s places all replicas together, %d tasks; leave minMember out", unitNode, p.total)
	case least > fewest:
		problem = fmt.Sprintf("%d is too large: if only the subgroups that minSubgroups needs are placed, the job may have only %d tasks; lower it, or leave it out", least, fewest)
	case least < minima:
		problem = fmt.Sprintf("%d is less than the subgroups' own minima, which add up to %d; raise it, or leave it out", least, minima)
	}
	if problem != "" {
		m.r.errorf(at.Add("minMember"), "%s", problem)
	}
	return least, problem == ""
}

// makeTopology converts topology levels.
func makeTopology(t *v1alpha1.Topology, at path, r reporter) cluster.Topology {
	if t == nil {
		return cluster.Topology{}
	}
	if t.Required == "" && len(t.Preferred) == 0 {
		r.errorf(at, "say the label of a level that is required or preferred, such as {required: rack}, or leave topology out")
	}
	if t.Required != "" {
		checkKey(t.Required, at.Add("required"), r)
	}
	checkDistinct(t.Preferred, "level", at.Add("preferred"), r)
	for i, level := range t.Preferred {
		switch at := at.Add("preferred", i); {
		case level == "": // checkDistinct has reported it
		case level == t.Required:
			r.errorf(at, "%s is required already; leave it out here", phrase.Quote(level))
		default:
			checkKey(level, at, r)
		}
	}
	return cluster.Topology{Required: t.Required, Preferred: append([]string(nil), t.Preferred...)}
}
