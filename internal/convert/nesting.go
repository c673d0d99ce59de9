package convert

import (
	"slices"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/nearest"
	"github.com/berth-project/berth/internal/phrase"
)

// nestSubgroups sets the parents of the subgroups, and how many subgroups must reach their
// minimum, at the top level and in each subgroup that contains others. It sorts the subgroups
// so that each follows its parent. It reports whether what is written is valid.
func (m *jobMaker) nestSubgroups(a *v1alpha1.Alternative, at, subgroupsAt path, p *layout) bool {
	ok, names, inside := true, []string{}, make([]int, len(a.Subgroups)+1)
	for i := range a.Subgroups {
		names = append(names, a.Subgroups[i].Name)
	}
	for i := range a.Subgroups {
		g, at := &a.Subgroups[i], subgroupsAt.Add(i, "parent")
		if g.Parent == "" {
			inside[0]++
			continue
		}
		k := slices.Index(names, g.Parent)
		if k < 0 {
			m.r.errorf(at, "there is no subgroup %s%s", phrase.Quote(g.Parent), nearest.Hint(g.Parent, names))
			ok = false
			continue
		}
		p.subgroups[i].Parent = k + 1
		inside[k+1]++
	}
	if !ok {
		return false
	}
	const most = 1000
	if nested := inside[0] < len(a.Subgroups) || a.MinSubgroups != nil; nested && len(a.Subgroups) > most {
		m.r.errorf(subgroupsAt, "%d subgroups are too many; if subgroups have a parent, or minSubgroups is set, the most is %d", len(a.Subgroups), most)
		return false
	}
	needAt := at
	if a.MinSubgroups != nil && a.MinSubgroups == m.job.Spec.MinSubgroups {
		needAt = path{"spec"}
	}
	p.minSubgroups, ok = m.minSubgroups(a.MinSubgroups, inside[0], needAt)
	for i := range a.Subgroups {
		least, fine := m.minSubgroups(a.Subgroups[i].MinSubgroups, inside[i+1], subgroupsAt.Add(i))
		p.subgroups[i].MinSubgroups = least
		ok = ok && fine
	}
	return m.parentsFirst(subgroupsAt, p) && ok
}

// minSubgroups converts the field minSubgroups of a job, an alternative or a subgroup: how
// many of the subgroups directly inside it must reach their minimum. Inside is how many
// subgroups these are. It returns 0, which means all, if the field is left out. It reports
// false if the field is not valid.
func (m *jobMaker) minSubgroups(least *int, inside int, at path) (int, bool) {
	switch {
	case least == nil:
		return 0, true
	case *least < 1:
		m.r.errorf(at.Add("minSubgroups"), "want at least 1, have %d; leave it out where all are needed", *least)
	case *least > inside:
		m.r.errorf(at.Add("minSubgroups"), "%d of only %d subgroups; lower it, or add some", *least, inside)
	default:
		return *least, true
	}
	return 0, false
}

// parentsFirst sorts the subgroups so that each follows its parent. It returns false if that
// is not possible because some subgroup is its own ancestor. The error is about the first
// subgroup that could not be sorted, which is in such a cycle or below one.
func (m *jobMaker) parentsFirst(at path, p *layout) bool {
	// sorted maps the number of a subgroup as written, counted from 1, to its number after
	// sorting. 0 means that it is not sorted yet.
	sorted := make([]int, len(p.subgroups)+1)
	var out []cluster.Subgroup
	for len(out) < len(p.subgroups) {
		before := len(out)
		for i, g := range p.subgroups {
			if sorted[i+1] == 0 && (g.Parent == 0 || sorted[g.Parent] > 0) {
				g.Parent = sorted[g.Parent]
				out = append(out, g)
				sorted[i+1] = len(out)
			}
		}
		if len(out) == before {
			i := slices.Index(sorted[1:], 0)
			m.r.errorf(at.Add(i, "parent"), "the ancestors of subgroup %s contain a cycle; give one of them another parent", phrase.Quote(p.subgroups[i].Name))
			return false
		}
	}
	p.subgroups = out
	for i := range p.roles {
		p.roles[i].subgroup = sorted[p.roles[i].subgroup]
	}
	return true
}
