package engine

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// placeWhole places the job on whole nodes of one node group, in the alternative for that
// group. The node filters reject nodes first, and the group filters are then called with the
// remaining nodes of each group: once with the nodes that would pass if no other task held
// anything, and once with those that pass now. Groups that pass both are tried, best score
// first, until the job is placed in one. It returns the alternative that was placed, or why
// none was.
func (p *placer) placeWhole(job *cluster.Job, forms []cluster.Alternative) (*cluster.Alternative, *Attempt) {
	w := &whole{placer: p, stmt: p.stmt, job: job, forms: forms}
	g := p.gang(&forms[0], nil)
	if a := g.depleted(); a != nil {
		return nil, a
	}
	if len(g.left) == 0 { // no task is pending: the tasks of the job are placed, or still releasing
		if forms[0].Enough((*cluster.Task).Placed) {
			return &forms[0], nil
		}
		return nil, g.miss()
	}
	if home := p.homeGroup(job, &forms[0]); home != nil {
		return w.placeAtHome(*home)
	}
	w.judgeGroups()
	// Groups with equal scores are in the order of their keys.
	slices.SortStableFunc(w.choices, func(a, b groupChoice) int {
		return cmp.Or(cmp.Compare(b.score.Total, a.score.Total), a.group.Key.Compare(b.group.Key))
	})
	for i := range w.choices {
		c := &w.choices[i]
		a := w.tryGroup(w.choices[i:])
		if a == nil {
			return c.form, nil
		}
		w.groups[c.miss].Rejection = a.rejection()
		w.last = a
		if p.fault.err != nil {
			break
		}
	}
	return nil, w.summary()
}

// whole is the state of placeWhole.
type whole struct {
	placer  *placer
	stmt    *Statement
	job     *cluster.Job
	forms   []cluster.Alternative
	groups  []GroupMiss
	choices []groupChoice
	before  *Attempt // of the first alternative that was rejected before any node was considered
	last    *Attempt // of the group that was tried last
}

// judgeGroups calls the filters and scores for every pair of an alternative and a node group for
// which the alternative may be used.
func (w *whole) judgeGroups() {
	all := w.placer.finder.view.Groups()
	for i := range w.forms {
		form := &w.forms[i]
		t := w.firstTask(form)
		if a := w.placer.finder.before(t); a != nil {
			if w.before == nil {
				w.before = a
				a.Alternative, a.Min = form.Name, form.Min
			}
			if namesGroup(form) {
				w.groups = append(w.groups, GroupMiss{*form.Whole.Only, 0, a.Before})
			}
			continue
		}
		there := false
		for _, g := range all {
			if !namesGroup(form) || g.Key == *form.Whole.Only {
				there = true
				w.judgeGroup(form, t, g)
			}
		}
		if namesGroup(form) && !there {
			w.groups = append(w.groups, groupGone(*form.Whole.Only))
		}
	}
}

// judgeGroup records why the group is rejected. If it is not rejected and can take the job now,
// it is scored and added to the choices.
func (w *whole) judgeGroup(form *cluster.Alternative, t *cluster.Task, g *cluster.Group) {
	now, ever := w.placer.passingNodes(t, g)
	r := w.placer.rejectGroup(w.job, form.Whole, g, ever)
	if r == nil {
		r = w.placer.rejectDomains(form, ever)
	}
	if r == nil && w.placer.rejectGroup(w.job, form.Whole, g, now) == nil {
		w.choices = append(w.choices, groupChoice{g, form, w.placer.scoreGroup(w.job, form.Whole, g, now), len(w.groups)})
	}
	w.groups = append(w.groups, GroupMiss{g.Key, len(ever), r})
}

// tryGroup places the alternative of the first choice on the nodes of its group. All tasks are
// placed or none. The remaining choices are used for explanations.
func (w *whole) tryGroup(choices []groupChoice) *Attempt {
	c, mark := &choices[0], w.stmt.Checkpoint()
	g := w.placer.gang(c.form, &scope{group: c.group})
	g.least = g.placed + len(g.left)
	a := g.arrange()
	if a == nil && !c.form.Enough((*cluster.Task).Placed) {
		a = g.miss() // some tasks of the job were evicted and still hold their room
	}
	if a == nil {
		w.stmt.setGroupScores(mark, choices)
		return nil
	}
	w.stmt.Rollback(mark)
	if a.Subgroup == "" && a.Level == "" {
		a.Min = c.form.Min
	}
	return a
}

// placeAtHome places the job on the node group that has other jobs of its set, or tasks of its
// own. The group is scored for explanations, but the group filters are not called: if the group
// has no room, the job waits.
func (w *whole) placeAtHome(home cluster.GroupKey) (*cluster.Alternative, *Attempt) {
	for i := range w.forms {
		form := &w.forms[i]
		if namesGroup(form) && *form.Whole.Only != home {
			continue
		}
		if a := w.placer.finder.before(w.firstTask(form)); a != nil {
			a.Alternative, a.Min = form.Name, form.Min
			return nil, a
		}
		for _, g := range w.placer.finder.view.Groups() {
			if g.Key != home {
				continue
			}
			now, _ := w.placer.passingNodes(w.firstTask(form), g)
			a := w.tryGroup([]groupChoice{{group: g, form: form, score: w.placer.scoreGroup(w.job, form.Whole, g, now)}})
			if a != nil && w.job.Set.Name != "" {
				a.Never = false // nodes may be added to the group
			}
			return form, a
		}
	}
	w.groups = []GroupMiss{groupGone(home)}
	return nil, w.summary()
}

// summary returns one attempt with the rejections of all groups.
func (w *whole) summary() *Attempt {
	if w.before != nil && len(w.choices) == 0 && !slices.ContainsFunc(w.groups, func(g GroupMiss) bool { return g.Rejection != w.before.Before }) {
		return w.before // no other rejection is known
	}
	a := w.last
	if a == nil {
		form := &w.forms[0]
		for i := range w.forms {
			if k := slices.IndexFunc(w.groups, func(g GroupMiss) bool {
				return g.Rejection == nil && namesGroup(&w.forms[i]) && g.Key == *w.forms[i].Whole.Only
			}); k >= 0 {
				form = &w.forms[i] // the job waits for room in the group of this alternative
				break
			}
		}
		a = w.placer.explain(form, w.firstTask(form), nil)
		a.Alternative, a.Min = form.Name, form.Min
	}
	a.Whole, a.Groups, a.Never = true, w.groups, false // the rejection of each group says whether waiting helps
	return a
}

// firstTask returns the first pending task of the alternative. All its tasks have equal requests,
// so the filters need to be called for one of them only.
func (w *whole) firstTask(form *cluster.Alternative) *cluster.Task {
	return w.placer.gang(form, nil).left[0]
}

// groupGone is the rejection of a node group that does not exist.
func groupGone(k cluster.GroupKey) GroupMiss {
	return GroupMiss{k, 0, &Rejection{Reason: GroupMissing, Cure: Wait | Grow, Subject: k.String()}}
}

// rejection returns the main rejection of the first task that could not be placed; nil if none is
// known.
func (a *Attempt) rejection() *Rejection {
	r := a.Before
	if r == nil && len(a.Nearest) > 0 {
		r = &a.Nearest[0].Rejection
	}
	if r != nil && a.Never {
		never := *r
		never.Cure &^= Wait | Evict
		r = &never
	}
	return r
}

// homeGroup returns the node group that the job must be placed on because jobs of its set, or
// tasks of its own, are there. It returns nil if there is none.
func (p *placer) homeGroup(job *cluster.Job, alt *cluster.Alternative) *cluster.GroupKey {
	if job.Set.Name != "" && !alt.Whole.Apart {
		if home := p.finder.view.Sets().Home(job.Set.Name); home != nil {
			return home
		}
	}
	if i := slices.IndexFunc(alt.Tasks, func(t *cluster.Task) bool { return t.Node != nil }); i >= 0 {
		if g := alt.Tasks[i].At().Group(); g != nil {
			return &g.Key
		}
	}
	return nil
}

func (p *placer) rejectGroup(job *cluster.Job, want *cluster.WholeNodes, g *cluster.Group, nodes []*cluster.Node) *Rejection {
	for i := range p.finder.hooks.groupFilters {
		h := &p.finder.hooks.groupFilters[i]
		if !h.profiles.decide(job) {
			continue
		}
		if r := h.fn(job, want, g, nodes); r != nil {
			return p.fault.sign(h.plugin, r)
		}
	}
	return nil
}

// rejectDomains rejects a group with nodes in too few domains, if tasks of the job must be in
// different domains (see AddExclusion).
func (p *placer) rejectDomains(form *cluster.Alternative, nodes []*cluster.Node) *Rejection {
	want := len(form.Tasks)
	have, _, r := p.explainer.apart(form.Tasks[0].Job, nodes, func(*cluster.Node) int { return 1 })
	if r == nil || have >= want {
		return nil
	}
	r.Want, r.Have = Quantity{int64(want), Count}, Quantity{int64(have), Count}
	return r
}

// groupChoice is a node group that can take the job now, and the alternative for it.
type groupChoice struct {
	group *cluster.Group
	form  *cluster.Alternative
	score Score
	miss  int // the index of the group in whole.groups
}

func (p *placer) scoreGroup(job *cluster.Job, want *cluster.WholeNodes, g *cluster.Group, nodes []*cluster.Node) Score {
	out := Score{Parts: make([]ScorePart, 0, len(p.finder.hooks.groupScores))}
	for i := range p.finder.hooks.groupScores {
		if h := &p.finder.hooks.groupScores[i]; h.profiles.decide(job) && (h.shapes == nil || hasShape(job, h.shapes)) {
			out.add(p.fault, h.plugin, h.weight, h.fn(job, want, g, nodes))
		}
	}
	return out
}

// hasShape reports whether a task of the job, in any of its alternatives, has a shape for which
// is returns true.
func hasShape(job *cluster.Job, is func(*cluster.Shape) bool) bool {
	for i := range job.Alternatives {
		if slices.ContainsFunc(job.Alternatives[i].Tasks, func(t *cluster.Task) bool { return is(t.Shape) }) {
			return true
		}
	}
	return false
}
