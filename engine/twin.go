package engine

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
)

// hookAnswers is what shape-form hooks returned: the code of a rejection, or a score in thousandths.
// Twin sessions keep it to find hooks that later return something else.
type hookAnswers map[answerKey]int64

// answerKey identifies a call of a hook: the node, the hook's place among the filters or
// scores, and whether it is a filter.
type answerKey struct {
	slot, order int
	filter      bool
}

// note keeps what a hook returned for the node.
func (r *ranking) note(n *cluster.Node, order int, filter bool, answer int64) {
	if r.answers == nil {
		r.answers = hookAnswers{}
	}
	r.answers[answerKey{n.Slot(), order, filter}] = answer
}

// findUnstableHook looks for a shape-form hook that returns something else than it returned before for the
// same node, although the node did not change. If it finds one, it fails the session with the
// name of its plugin and reports true.
func (f *finder) findUnstableHook(shape *cluster.Shape) bool {
	r := f.index.rankings[shape]
	if r == nil {
		return false
	}
	for _, n := range f.view.Nodes() {
		i := r.division.of(n.Slot())
		if i < 0 || i >= len(r.codes) {
			continue
		}
		if f.findUnstableFilter(r, n) || r.codes[i] == 0 && f.findUnstableScore(r, n) {
			return true
		}
	}
	return false
}

// findUnstableFilter calls the filters for the node again and compares the results with those that
// were kept.
func (f *finder) findUnstableFilter(r *ranking, n *cluster.Node) bool {
	spell := func(c code) string {
		if c.plugin == "" {
			return "no rejection"
		}
		return string(c.reason)
	}
	for _, h := range f.hooks.filters {
		answer, kept := r.answers[answerKey{n.Slot(), h.order, true}]
		if !kept || h.shapes != nil && !h.shapes(r.shape) {
			continue
		}
		was, now := f.index.codes[answer], code{}
		if rejection := h.fn(r.shape, n); rejection != nil {
			now = code{h.plugin, rejection.Reason, rejection.Cure, rejection.Precedence}
		}
		if was != now {
			f.failDiffers(h.plugin, hookName("Filter", h.static), n, spell(was), spell(now))
			return true
		}
	}
	return false
}

// findUnstableScore calls the scores for the node again and compares the results with those that were
// kept.
func (f *finder) findUnstableScore(r *ranking, n *cluster.Node) bool {
	for i := range f.hooks.shapeScores {
		h := &f.hooks.shapeScores[i]
		was, kept := r.answers[answerKey{n.Slot(), h.order, false}]
		if !kept || h.shapes != nil && !h.shapes(r.shape) {
			continue
		}
		if now := milli(h.fn(r.shape, n)); now != was {
			f.failDiffers(h.plugin, hookName("Score", h.static), n, fmt.Sprint(float64(was)/1000), fmt.Sprint(float64(now)/1000))
			return true
		}
	}
	return false
}

// compareEqual judges each node that changed, and fails the session if its key or its code is not that
// of its peers: a hook was declared with EqualNodes and depends on what differs.
func (x *index) compareEqual(r *ranking) {
	d, recent := r.division, x.view.Recent()
	if d.byNode() {
		return
	}
	for slot := range recent.Slots() {
		n := x.view.At(slot)
		if n == nil || recent.NodeVersion(slot) <= r.compared || x.fault.err != nil {
			continue
		}
		number := d.of(slot)
		if r.unsettled.has(number) {
			if !x.quickly(r, n) && x.fault.err == nil {
				x.fault.fail(r.quick[0].plugin, "a test of AddQuickReject has another result for node %s than for an equal node", n.Name)
			}
			continue
		}
		r.statics.answers[d.spec(number)] = unjudged
		if key, c := x.judge(r, d.spec(number), n); (key != r.keys[number] || c != r.codes[number]) && x.fault.err == nil {
			x.failUnequal(r, n, number)
		}
	}
	r.compared = x.view.Version()
}

// failUnequal fails the session because the hooks have other answers for the node than for its peers.
func (x *index) failUnequal(r *ranking, n *cluster.Node, number int) {
	d := r.division
	nodes := &d.list[number].nodes
	var at position
	other := x.view.At(nodes.slot(at))
	for ok := true; ok && other == n; at, ok = nodes.next(at) {
		other = x.view.At(nodes.slot(at))
	}
	if other == n {
		x.fault.fail("engine", "hooks that are declared with EqualNodes have other answers for node %s than for a node that was equal to it before", n.Name)
		return
	}
	r.statics.answers[d.spec(number)] = unjudged
	x.judge(r, d.spec(number), other)
	differs := func(order int, filter bool) bool {
		a, kept := r.answers[answerKey{n.Slot(), order, filter}]
		b, also := r.answers[answerKey{other.Slot(), order, filter}]
		return kept && also && a != b
	}
	plugin := "engine"
	for i := range x.hooks.shapeScores {
		if h := &x.hooks.shapeScores[i]; differs(h.order, false) {
			plugin = h.plugin
		}
	}
	for _, h := range x.hooks.filters {
		if differs(h.order, true) {
			plugin = h.plugin
		}
	}
	x.fault.fail(plugin, "a hook that is declared with EqualNodes has different answers for the nodes %s and %s: they differ only in names, files, and labels that the declaration does not name", other.Name, n.Name)
}

func hookName(kind string, static bool) string {
	if static {
		return "AddStatic" + kind
	}
	return "AddShape" + kind
}

func (f *finder) failDiffers(plugin, hook string, n *cluster.Node, was, now string) {
	may := "the shape, the node and what the plugin publishes"
	if hook == "AddStaticFilter" || hook == "AddStaticScore" {
		may = "the shape, the node's own properties (not what tasks hold of it), and what the plugin publishes"
	}
	f.fault.fail(plugin, "%s returned %s for node %s and returns %s now, although the node did not change; what it returns may depend only on %s", hook, was, n.Name, now, may)
}
