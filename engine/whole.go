package engine

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// placeWhole puts the job onto whole nodes of one group, in the form that is for
// it. Node filters thin out the nodes; group filters then see what is left of
// each group. What could ever fit is kept apart from what fits now, and groups
// that fit now are tried, best score first, until one places.
func (p *placer) placeWhole(job *cluster.Job, forms []cluster.Alternative) (*cluster.Alternative, *Attempt) {
	w := &whole{placer: p, stmt: p.stmt, job: job, forms: forms}
	g := p.gang(&forms[0], nil)
	if a := g.depleted(); a != nil {
		return nil, a
	}
	if len(g.left) == 0 { // others are chosen from before anything is placed
		if forms[0].Enough((*cluster.Task).Placed) {
			return &forms[0], nil
		}
		return nil, g.miss()
	}
	if home := p.homeGroup(job, &forms[0]); home != nil {
		return w.placeAtHome(*home)
	}
	w.judgeGroups()
	// Equal scores leave groups in the order of their keys.
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

// whole is a job that wants whole nodes of one group on its way there.
type whole struct {
	placer  *placer
	stmt    *Statement
	job     *cluster.Job
	forms   []cluster.Alternative
	groups  []GroupMiss
	choices []groupChoice
	before  *Attempt // turned down before any node was looked at
	last    *Attempt // of the groups that were tried
}

// judgeGroups asks about every group that a form is for.
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

// judgeGroup finds out what is wrong with the group, and what it is worth if nothing is.
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

// tryGroup places the form of the first choice on the nodes of its group: whole nodes
// come all or none. The other choices are those that are left.
func (w *whole) tryGroup(choices []groupChoice) *Attempt {
	c, mark := &choices[0], w.stmt.Checkpoint()
	g := w.placer.gang(c.form, &scope{group: c.group})
	g.least = g.placed + len(g.left)
	a := g.arrange()
	if a == nil && !c.form.Enough((*cluster.Task).Placed) {
		a = g.miss() // some have not left yet
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

// placeAtHome places the job where others of its set are, or more of its own tasks. The
// group is scored to be shown, but not judged again: a job that finds no room there
// waits for it.
func (w *whole) placeAtHome(home cluster.Key) (*cluster.Alternative, *Attempt) {
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
			now := w.placer.nodesNow(w.firstTask(form), g)
			a := w.tryGroup([]groupChoice{{group: g, form: form, score: w.placer.scoreGroup(w.job, form.Whole, g, now)}})
			if a != nil && w.job.Set.Name != "" {
				a.Never = false // the group may grow
			}
			return form, a
		}
	}
	w.groups = []GroupMiss{groupGone(home)}
	return nil, w.summary()
}

// summary sums up what is wrong with the groups, as one attempt.
func (w *whole) summary() *Attempt {
	if w.before != nil && len(w.choices) == 0 && !slices.ContainsFunc(w.groups, func(g GroupMiss) bool { return g.Rejection != w.before.Before }) {
		return w.before // nothing else was looked at
	}
	a := w.last
	if a == nil {
		form := &w.forms[0]
		for i := range w.forms {
			if k := slices.IndexFunc(w.groups, func(g GroupMiss) bool {
				return g.Rejection == nil && namesGroup(&w.forms[i]) && g.Key == *w.forms[i].Whole.Only
			}); k >= 0 {
				form = &w.forms[i] // it is what the job waits for
				break
			}
		}
		a = w.placer.explain(form, w.firstTask(form), nil)
		a.Alternative, a.Min = form.Name, form.Min
	}
	a.Whole, a.Groups, a.Never = true, w.groups, false // what can never be is said of each group
	return a
}

// firstTask is the task that speaks for all: whole nodes are asked for alike.
func (w *whole) firstTask(form *cluster.Alternative) *cluster.Task {
	return w.placer.gang(form, nil).left[0]
}

func groupGone(k cluster.Key) GroupMiss {
	return GroupMiss{k, 0, &Rejection{Reason: GroupGone, Cure: Wait | Grow, Subject: k.String()}}
}

// rejection is what stood in the way of the first task that found no place.
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

// homeGroup is the group that the job belongs on, since some of it or of its set runs there.
func (p *placer) homeGroup(job *cluster.Job, alt *cluster.Alternative) *cluster.Key {
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

// passingNodes are the group's nodes that take the task now, and those that would
// if everybody else were gone.
func (p *placer) passingNodes(t *cluster.Task, g *cluster.Group) (now, ever []*cluster.Node) {
	ask := p.finder.verdicts(t)
	filters, _, _ := p.finder.taskHooks(t)
	for _, n := range g.Nodes {
		rejected, transient := ask(n)
		if rejected && !transient {
			continue
		}
		r := p.finder.rejectTask(filters, t, n)
		if !rejected && r == nil {
			now = append(now, n)
		}
		if (r == nil || r.Cure.Transient()) && (!rejected || p.finder.onlyHeld(t, n)) {
			ever = append(ever, n)
		}
	}
	return now, ever
}

func (p *placer) rejectGroup(job *cluster.Job, want *cluster.WholeNodes, g *cluster.Group, nodes []*cluster.Node) *Rejection {
	for _, h := range p.finder.hooks.groupFilters {
		if r := h.fn(job, want, g, nodes); r != nil {
			return p.fault.sign(h.plugin, r)
		}
	}
	return nil
}

// rejectDomains turns a group down whose nodes are in fewer domains than the form
// needs, where the tasks of the job exclude each other.
func (p *placer) rejectDomains(form *cluster.Alternative, nodes []*cluster.Node) *Rejection {
	want := len(form.Tasks)
	have, r := p.explainer.apart(form.Tasks[0].Job, nodes, func(*cluster.Node) int { return 1 })
	if r == nil || have >= want {
		return nil
	}
	r.Want, r.Have = Quantity{int64(want), Count}, Quantity{int64(have), Count}
	return r
}

// groupChoice is a group that fits now, and the form that is for it.
type groupChoice struct {
	group *cluster.Group
	form  *cluster.Alternative
	score Score
	miss  int // its place among the groups that were judged
}

func (p *placer) scoreGroup(job *cluster.Job, want *cluster.WholeNodes, g *cluster.Group, nodes []*cluster.Node) Score {
	out := Score{Parts: make([]Part, 0, len(p.finder.hooks.groupScores))}
	for _, h := range p.finder.hooks.groupScores {
		out.add(p.fault, h.plugin, h.weight, h.fn(job, want, g, nodes))
	}
	return out
}

// nodesNow are the group's nodes that take the task now.
func (p *placer) nodesNow(t *cluster.Task, g *cluster.Group) []*cluster.Node {
	ask := p.finder.verdicts(t)
	filters, _, _ := p.finder.taskHooks(t)
	var out []*cluster.Node
	for _, n := range g.Nodes {
		if rejected, _ := ask(n); !rejected && p.finder.rejectTask(filters, t, n) == nil {
			out = append(out, n)
		}
	}
	return out
}
