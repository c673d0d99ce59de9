package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// Learner computes the parameters of a plugin, such as prices, from State. It returns nil if the
// present parameters are still good, and otherwise new ones, which the scores of the plugin use
// from then on. Whether new parameters are due must depend on State alone.
type Learner func() []int64

// AddLearner registers functions that learn parameters for the shape-form scores and the device
// scores of the plugin. Static scores and filters must not use them. State keeps the parameters
// (cluster.Learn), so that a session after a restart uses the same ones. Use is called when all
// plugins are opened, with the parameters that State has; nil if it has none. Learn is called
// before the first turn of a session, and after each turn that decided something.
//
// Scores must not depend on the first parameters, as many as notes says, such as the time at which
// the others were computed. If only these change, no node is scored again.
//
// Combining: each plugin has parameters of its own.
func (h *Hooks) AddLearner(notes int, use func(parameters []int64), learn Learner) {
	var key string
	if h.opening != nil {
		key = parametersKey(h, h.opening.Name())
	}
	add(h, &h.learners, learner{key, use, learn, notes}, use == nil || learn == nil || notes < 0)
}

// learner is a Learner with the function that takes the parameters of State.
type learner struct {
	key   string // the name under which State has the parameters
	use   func([]int64)
	learn Learner
	notes int // how many parameters, the first ones, scores do not depend on
}

// scored returns the parameters that scores may depend on.
func (l *learner) scored(parameters []int64) []int64 {
	return parameters[min(l.notes, len(parameters)):]
}

// learning calls the Learner hooks.
type learning struct {
	clerk *clerk
	index *index
}

// open passes the parameters that State has to the plugins and to the index.
func (l *learning) open() {
	for i := range l.clerk.hooks.learners {
		h := &l.clerk.hooks.learners[i]
		values := l.clerk.view.Parameters(h.fn.key)
		h.fn.use(values)
		l.index.learn(h.fn.key, h.fn.scored(values))
	}
}

// run calls every Learner.
func (l *learning) run() {
	for i := range l.clerk.hooks.learners {
		h := &l.clerk.hooks.learners[i]
		if values := h.fn.learn(); values != nil && l.clerk.fault.err == nil {
			l.clerk.learn(h.fn.key, values)
			l.index.learn(h.fn.key, h.fn.scored(values))
		}
	}
}

// learn changes the parameters of the plugin in State.
func (c *clerk) learn(plugin string, values []int64) {
	change := cluster.Learn{Plugin: plugin, Parameters: slices.Clone(values)}
	if err := c.state.Apply(change); err != nil {
		c.fault.fail(plugin, "%v", err)
		return
	}
	if c.recording {
		c.changes = append(c.changes, change)
	}
}

// learn begins a new epoch of scores if the parameters of the plugin that scores may depend on are
// not those that it had before.
func (x *index) learn(plugin string, values []int64) {
	if was, known := x.learnt[plugin]; known && slices.Equal(was, values) {
		return
	}
	x.learnt[plugin] = slices.Clone(values)
	x.scoreEpoch++
}

// rescore computes the scores of all feasible nodes again, except those that were judged because they
// have changed after the version of the division.
func (x *index) rescore(r *ranking, since uint64) {
	r.scoreEpoch = x.scoreEpoch
	d := r.division
	x.blocks = x.blocks[:0]
	for i := range r.keys {
		if r.codes[i] != 0 || r.keys[i] == absent || d.renewed(i) > since {
			continue
		}
		slot := d.first(i)
		key := x.score(r, d.spec(i), x.view.At(slot))
		if !d.byNode() {
			r.kept.keep(keptAnswer{key, d.list[i].pattern, 0}, len(d.at))
		}
		if key != absent && len(r.domainScorers) > 0 {
			key += r.domainKeys[i]
		}
		if r.keys[i] != key {
			r.keys[i] = key
			x.noteBlock(i)
		}
	}
	r.update(x.blocks)
}

// epochs returns a number that grows with every new epoch.
func (x *index) epochs() uint64 { return x.epoch + x.scoreEpoch }
