package engine

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// The hooks. Shape-form hooks see a shape and a node, nothing else, and must be
// pure functions of the two, of their configuration and of parameters that
// their plugin published: the engine remembers their answers until the node
// changes; those of static ones until the node itself does. Task-form hooks may
// use anything and are asked every time.
//
// A plugin registers hooks in OnSessionOpen. The comment of each Add method ends
// with a paragraph that begins "Combining:" and says how the answers of several
// plugins become one; docs/reference/hooks.md is made from these comments.
type (
	// QueueOrder, SiblingOrder, JobOrder and TaskOrder compare: negative puts
	// the left one first, 0 leaves it to others.
	QueueOrder   func(left, right *cluster.Queue) int
	SiblingOrder func(left, right Bid) int
	JobOrder     func(left, right *cluster.Job) int
	TaskOrder    func(left, right *cluster.Task) int

	// SurplusRule says whether others may be evicted for the task that the job wants
	// beyond its minimum.
	SurplusRule func(job *cluster.Job, lacks []*cluster.Task) bool

	// PreFilter turns a task down before any node is looked at; nil lets it pass.
	PreFilter func(*cluster.Task, *cluster.Job) *Rejection
	// ShapeFilter turns a node down for every task of the shape; nil lets it pass.
	ShapeFilter func(*cluster.Shape, *cluster.Node) *Rejection
	// TaskFilter turns a node down for one task; nil lets it pass.
	TaskFilter func(*cluster.Task, *cluster.Job, *cluster.Node) *Rejection

	// ShapeScore, TaskScore and DeviceScore score from 0 to 100; anything else
	// fails the session and names the plugin.
	ShapeScore  func(*cluster.Shape, *cluster.Node) float64
	TaskScore   func(*cluster.Task, *cluster.Job, *cluster.Node) float64
	DeviceScore func(*cluster.Shape, *cluster.Node, *cluster.Device) float64

	// GroupFilter turns a group down for a job that wants whole nodes; nodes are those of
	// the group that passed the filters of nodes. It is asked twice: about the nodes that
	// would do if no other task held anything, and about those that do now.
	GroupFilter func(*cluster.Job, *cluster.WholeNodes, *cluster.Group, []*cluster.Node) *Rejection
	// GroupScore scores a group from 0 to 100; nodes are those that do now.
	GroupScore func(*cluster.Job, *cluster.WholeNodes, *cluster.Group, []*cluster.Node) float64

	// InstanceScore says from 0 to 100 how much a job of a set, placed or not,
	// should be kept when the set shrinks.
	InstanceScore func(*cluster.Job) float64

	// VictimRule prepares to judge which victims may leave for the job, which lacks
	// these tasks for its minimum; a nil answer protects all. The function that it
	// returns says Allow where the victim should leave, NoOpinion where that is left to
	// others, Protect where it stays, and NotYet where the eviction of others may end
	// that. It is asked about one victim at a time, while those of the plan that
	// come before it hold nothing any more. Victims are tried in any order, so that a
	// plan is judged by the State that it ends in.
	VictimRule func(forJob *cluster.Job, lacks []*cluster.Task) func(*Victim) Verdict

	// ClassRule prepares to say of classes of jobs whether a VictimRule might allow
	// victims of them: where it says no, the VictimRule allows none.
	ClassRule func(forJob *cluster.Job, lacks []*cluster.Task) func(cluster.Class) bool
	// QueueRule names the queues whose jobs a VictimRule might allow as victims of the
	// job; all: it may be any queue.
	QueueRule func(forJob *cluster.Job, lacks []*cluster.Task) (queues []string, all bool)

	// BalanceRule prepares to measure how evenly the queues hold what they deserve. It is
	// asked while the plan is carried out, and answers nil where the plan is fair
	// without any comparison.
	BalanceRule func(forJob *cluster.Job, lacks []*cluster.Task, plan []*Victim) func() Balance

	// Adapter tries to cure a refusal: it proposes changes to the statement and
	// lets Session.Place judge them. It returns what Place said last: nil when the
	// job is placed.
	Adapter func(*Statement, *cluster.Job, *Refusal) *Refusal

	// StandingRule says how a queue stands with what it asks for or holds, to be told;
	// nil where there is nothing to be said.
	StandingRule func(*cluster.Queue) []Standing

	// Sweep acts once, when all pending jobs have had their turn: what it does to
	// the statement is committed.
	Sweep func(*Statement)
)

// Bid is a queue whose turn it may be, and the job that it would give: the first in
// its line, or the first in the line of the queue below it whose turn it would be.
type Bid struct {
	Queue *cluster.Queue
	Job   *cluster.Job
}

// FrozenOrder prepares to compare other bids with the bid as it stands now, whatever is
// decided meanwhile: negative puts the frozen bid first, as in a SiblingOrder.
type FrozenOrder func(Bid) func(other Bid) int

// EventHandler hears every virtual allocation and eviction, and every undo of
// one as its opposite. Handlers cannot fail and must be quick.
type EventHandler struct {
	AllocateFunc   func(*Event)
	DeallocateFunc func(*Event)
}

type hook[F any] struct {
	fn     F
	origin any // what the plugin registered, where fn is made of it
	plugin string
	weight int64
	// For which shapes, or tasks, the hook has anything to say; nil: all.
	shapes     func(*cluster.Shape) bool
	tasks      func(*cluster.Task, *cluster.Job) bool
	static     bool
	siblings   bool        // of a comparison of queues: asked about queues with the same parent alone
	freeze     FrozenOrder // of such a comparison; nil: bids cannot be compared later
	isBound    bool        // of a score that is registered with it: ranked by, and not itself a score
	upperBound ShapeScore  // the bound of a task-form score; nil: 100
	class      ClassRule   // of a VictimRule: which classes it might allow; nil: any
	queues     QueueRule   // of a VictimRule: which queues have these classes; nil: any
	last       *LastResort // of a VictimRule: what replaces it where no plan was found
	order      int         // place among the hooks of its kind, in the order they are asked
}

// Hooks are those of a session. Plugins register theirs in OnSessionOpen.
type Hooks struct {
	opening  *weighted // the plugin that is registering hooks; nil: none is
	fault    *fault
	publish  func(plugin string, parameters uint64)
	makeRoom Adapter

	queueOrders    []hook[SiblingOrder]
	jobPriorities  []hook[JobOrder]
	jobOrders      []hook[JobOrder]
	surpluses      []hook[SurplusRule]
	taskOrders     []hook[TaskOrder]
	preFilters     []hook[PreFilter]
	shapeFilters   []hook[ShapeFilter]
	taskFilters    []hook[TaskFilter]
	shapeScores    []hook[ShapeScore]
	taskScores     []hook[TaskScore]
	deviceScores   []hook[DeviceScore]
	groupFilters   []hook[GroupFilter]
	groupScores    []hook[GroupScore]
	exclusions     []hook[ExclusionRule]
	instanceScores []hook[InstanceScore]
	victims        [purposes][]hook[VictimRule]
	victimCosts    []hook[VictimCost]
	means          []Means
	adapters       []hook[Adapter]
	sweeps         []hook[Sweep]
	standings      []hook[StandingRule]
	handlers       []hook[EventHandler]
	reservers      reservers
	observers      []hook[Observer]
	hints          hints
}

// staticFirst puts static filters before the others, each kind in profile order.
func staticFirst(filters []hook[ShapeFilter]) {
	slices.SortStableFunc(filters, func(a, b hook[ShapeFilter]) int { return trueFirst(a.static, b.static) })
	for i := range filters {
		filters[i].order = i
	}
}

// misused voids the session: a plugin registered a hook that cannot be asked.
func (h *Hooks) misused(hook, format string, args ...any) {
	plugin := "engine"
	if h.opening != nil {
		plugin = h.opening.Name()
	}
	h.fault.fail(plugin, hook+": "+format, args...)
}

func add[F any](h *Hooks, list *[]hook[F], fn F) *hook[F] {
	if h.opening == nil {
		h.misused("a hook", "it was registered after the session had opened; register hooks in OnSessionOpen")
		return &hook[F]{}
	}
	if v := reflect.ValueOf(fn); v.Kind() == reflect.Func && v.IsNil() {
		h.misused(fmt.Sprintf("%T", fn), "a hook without a function was registered")
		return &hook[F]{}
	}
	*list = append(*list, hook[F]{fn: fn, origin: fn, plugin: h.opening.Name(), weight: h.opening.weight, order: len(*list)})
	return &(*list)[len(*list)-1]
}

// AddQueueOrder registers a comparison of queues: whose turn it is. Queues are
// compared anew for every job.
//
// Combining: in profile order; the first answer that is not 0 decides, then the
// queue's name.
func (h *Hooks) AddQueueOrder(fn QueueOrder) {
	if fn == nil {
		h.misused("AddQueueOrder", "a hook without a function was registered")
		return
	}
	add(h, &h.queueOrders, func(l, r Bid) int { return fn(l.Queue, r.Queue) }).origin = fn
}

// AddSiblingOrder registers a comparison of queues with the same parent, each with
// the job that it would give: queues are compared where their branches part. While a
// session runs, the answer for two siblings may change only with what they and the
// queues below them use, and with the jobs: they are compared again when one of these
// changes. Jobs that nothing tells apart but their names and ages must be answered
// alike. Session.Lacks has the tasks that the job would be given room for.
//
// Combining: as AddQueueOrder. Where all comparisons are of this kind, the name
// that decides last is that of the queue where the branches part.
func (h *Hooks) AddSiblingOrder(fn SiblingOrder) {
	add(h, &h.queueOrders, fn).siblings = true
}

// AddFrozenOrder registers how the comparison of siblings that the plugin registered
// last compares with a bid as it stood before. Until something changes, its answers must
// be those of the comparison, and these must put all bids in one order. It is optional:
// where all comparisons of queues have it, patient sessions find the next job to be tried
// without giving each parked job its turn.
//
// Combining: as AddSiblingOrder.
func (h *Hooks) AddFrozenOrder(fn FrozenOrder) {
	last := len(h.queueOrders) - 1
	if last < 0 || h.opening == nil || h.queueOrders[last].plugin != h.opening.Name() || !h.queueOrders[last].siblings {
		h.misused("AddFrozenOrder", "it is called after AddSiblingOrder of the same plugin; there is none")
		return
	}
	h.queueOrders[last].freeze = fn
}

// AddJobPriority registers a comparison of jobs within a queue that counts before
// all others. Of jobs that it does not tell apart, those that lack their minimum come
// first; then tasks beyond the minimum are dealt in turn, to the job that has the
// fewest. The answer for two jobs may change only when one of them does, and not with
// time: jobs are kept in order from session to session.
//
// Combining: in profile order; the first answer that is not 0 decides, then what the
// jobs lack, then the comparisons of AddJobOrder.
func (h *Hooks) AddJobPriority(fn JobOrder) { add(h, &h.jobPriorities, fn) }

// AddSurplus registers a say over whether room may be made for a task beyond its
// job's minimum.
//
// Combining: room is made if some hook says so.
func (h *Hooks) AddSurplus(fn SurplusRule) { add(h, &h.surpluses, fn) }

// AddJobOrder registers a comparison of jobs within a queue that want the same:
// their minimum, or as many tasks more. The answer for two jobs may change only when
// one of them does, and not with time: jobs are kept in order from session to session.
//
// Combining: in profile order; the first answer that is not 0 decides, then the
// job's ID.
func (h *Hooks) AddJobOrder(fn JobOrder) { add(h, &h.jobOrders, fn) }

// AddTaskOrder registers a comparison of tasks within a job.
//
// Combining: in profile order; the first answer that is not 0 decides, then the
// order in which the tasks were written.
func (h *Hooks) AddTaskOrder(fn TaskOrder) { add(h, &h.taskOrders, fn) }

// AddPreFilter registers a check that needs no node. It is asked anew for
// each task, after the tasks before it were placed.
//
// Combining: in profile order; the first rejection counts, and no node is looked at.
func (h *Hooks) AddPreFilter(fn PreFilter) { add(h, &h.preFilters, fn) }

// AddShapeFilter registers a shape-form filter. Matters may be nil; where it
// answers false the filter is taken to pass.
//
// Combining: all must pass. Static filters are asked first, then the other
// shape-form ones, then the task-form ones, each kind in profile order; the first
// rejection of a node counts. Where waiting cures the first and it is a static
// filter's, the first static one that waiting does not cure counts instead.
func (h *Hooks) AddShapeFilter(matters func(*cluster.Shape) bool, fn ShapeFilter) {
	add(h, &h.shapeFilters, fn).shapes = matters
}

// AddStaticFilter registers a shape-form filter that looks at what the node
// is (labels, taints, capacities, kinds of device) and never at what is held of
// it. It is asked again only when the node itself changes.
//
// Combining: as AddShapeFilter, before all filters that are not static.
func (h *Hooks) AddStaticFilter(matters func(*cluster.Shape) bool, fn ShapeFilter) {
	k := add(h, &h.shapeFilters, fn)
	k.shapes, k.static = matters, true
}

// AddTaskFilter registers a task-form filter. Matters may be nil; where it
// answers false the filter is taken to pass.
//
// Combining: as AddShapeFilter, after all filters of the shape form.
func (h *Hooks) AddTaskFilter(matters func(*cluster.Task, *cluster.Job) bool, fn TaskFilter) {
	add(h, &h.taskFilters, fn).tasks = matters
}

// AddShapeScore registers a shape-form score. Matters may be nil; where it
// answers false the score is left out for every node alike.
//
// Combining: node scores of all forms are multiplied with their plugin's weight
// and added; the highest sum wins, ties go to the lowest node name.
func (h *Hooks) AddShapeScore(matters func(*cluster.Shape) bool, fn ShapeScore) {
	add(h, &h.shapeScores, fn).shapes = matters
}

// AddStaticScore registers a shape-form score that looks at what the node is
// and never at what is held of it. It is asked again only when the node itself changes.
//
// Combining: as AddShapeScore.
func (h *Hooks) AddStaticScore(matters func(*cluster.Shape) bool, fn ShapeScore) {
	k := add(h, &h.shapeScores, fn)
	k.shapes, k.static = matters, true
}

// AddTaskScore registers a task-form score. Matters may be nil; where it
// answers false the score is left out for every node alike.
//
// Combining: as AddShapeScore.
func (h *Hooks) AddTaskScore(matters func(*cluster.Task, *cluster.Job) bool, fn TaskScore) {
	add(h, &h.taskScores, fn).tasks = matters
}

// AddBoundedScore registers a task-form score and, in the shape form, the most
// that any task of the shape may score on the node. The bound is remembered, nodes
// are ranked by it, and the score is asked only about those that may still win. A
// score above its bound fails the session. Matters may be nil; where it answers
// false the score is left out for every node alike.
//
// Combining: as AddShapeScore; the bound adds nothing.
func (h *Hooks) AddBoundedScore(matters func(*cluster.Shape) bool, bound ShapeScore, fn TaskScore) {
	b := add(h, &h.shapeScores, bound)
	b.shapes, b.isBound = matters, true
	k := add(h, &h.taskScores, fn)
	k.upperBound = bound
	if matters != nil {
		k.tasks = func(t *cluster.Task, _ *cluster.Job) bool { return matters(t.Shape) }
	}
}

// AddDeviceScore registers a score for the devices of a node. It decides which of
// them a task gets; a policy whose node score depends on that asks Session.Devices.
//
// Combining: multiplied with the plugin's weight and added; the highest sums win,
// ties go to the lowest device index.
func (h *Hooks) AddDeviceScore(fn DeviceScore) { add(h, &h.deviceScores, fn) }

// AddGroupFilter registers a filter over groups.
//
// Combining: in profile order; the first rejection of a group counts.
func (h *Hooks) AddGroupFilter(fn GroupFilter) { add(h, &h.groupFilters, fn) }

// AddGroupScore registers a score for groups.
//
// Combining: multiplied with the plugin's weight and added; groups are tried from
// the highest sum down, ties in the order of their keys, until one places the job.
func (h *Hooks) AddGroupScore(fn GroupScore) { add(h, &h.groupScores, fn) }

// AddInstanceScore registers a keep-preference for scale-down.
//
// Combining: multiplied with the plugin's weight and added; the lowest sum is retired
// first, then the newest job, then by ID.
func (h *Hooks) AddInstanceScore(fn InstanceScore) { add(h, &h.instanceScores, fn) }

// AddReclaimable registers a say over which victims leave for jobs that reclaim their
// share: it allows, protects, or leaves it to others.
//
// Combining: a victim leaves if some hook allows it and none protects it; of those that
// protect it, the first in profile order gives the reason.
func (h *Hooks) AddReclaimable(fn VictimRule) { add(h, &h.victims[Reclaim], fn) }

// AddPreemptable registers a say over which victims leave for jobs that matter more.
//
// Combining: as AddReclaimable.
func (h *Hooks) AddPreemptable(fn VictimRule) { add(h, &h.victims[Preempt], fn) }

// AddMovable registers a say over which victims are moved to another node.
//
// Combining: as AddReclaimable.
func (h *Hooks) AddMovable(fn VictimRule) { add(h, &h.victims[Move], fn) }

// NarrowVictims says which classes of jobs the plugin's hook of the purpose might
// allow. Where all hooks of a purpose are narrowed, only nodes with jobs of
// such classes are looked at.
//
// Combining: a class is looked at if some hook might allow it.
func (h *Hooks) NarrowVictims(p Purpose, fn ClassRule) {
	visitOwn(h, p, "NarrowVictims", func(k *hook[VictimRule]) { k.class = fn })
}

// NarrowQueues says which queues have the classes that the plugin's hook of the purpose
// might allow, so that the classes of all other queues are not asked about one by one.
//
// Combining: a queue is looked at if some hook names it, or if some hook that is narrowed
// to classes is not narrowed to queues.
func (h *Hooks) NarrowQueues(p Purpose, fn QueueRule) {
	visitOwn(h, p, "NarrowQueues", func(k *hook[VictimRule]) { k.queues = fn })
}

// own visits the hooks of the purpose that the plugin registered. That there is none
// voids the session.
func visitOwn(h *Hooks, p Purpose, caller string, visit func(*hook[VictimRule])) {
	found := false
	if p >= purposes {
		h.misused(caller, "there is no purpose %d", p)
		return
	}
	for i := range h.victims[p] {
		if k := &h.victims[p][i]; h.opening != nil && k.plugin == h.opening.Name() {
			visit(k)
			found = true
		}
	}
	if !found {
		h.misused(caller, "it is called after the plugin's own hook for the purpose %s was registered; there is none", p)
	}
}

// LastResort is what a plugin's hook of a purpose is replaced by in a second search,
// where the first found no plan.
type LastResort struct {
	Victims VictimRule
	Classes ClassRule
	Queues  QueueRule // those that have the classes; nil: any
	// Balance compares the State that a plan ends in with the State without the plan:
	// a plan that is not lower is not taken. In both, the room that is idle is given to
	// pending jobs and to the victims first, in the order of their turns.
	Balance BalanceRule
}

// Balance is how evenly queues hold what they deserve at one time.
type Balance interface {
	// Below reports whether the queues hold what they deserve more evenly than in the other.
	Below(Balance) bool
}

// AddLastResort registers what replaces the plugin's hook of the purpose where no plan
// was found.
//
// Combining: as AddReclaimable; a plan must be lower by every Balance.
func (h *Hooks) AddLastResort(p Purpose, last LastResort) {
	if last.Victims == nil {
		h.misused("AddLastResort", "it needs Victims")
		return
	}
	visitOwn(h, p, "AddLastResort", func(k *hook[VictimRule]) { k.last = &last })
}

// Means is a purpose that victims may leave for, and the reason that their evictions
// give.
type Means struct {
	Purpose Purpose
	Reason  Reason
}

// AddMeans lets victims leave for the purpose, so that jobs find room which have none.
//
// Combining: one search finds plans whose victims leave for any of the purposes.
func (h *Hooks) AddMeans(p Purpose, why Reason) {
	if p >= purposes {
		h.misused("AddMeans", "there is no purpose %d", p)
		return
	}
	if len(h.means) == 0 {
		h.AddAdapter(h.makeRoom)
	}
	h.means = append(h.means, Means{p, why})
}

// NoClass is the ClassRule of hooks that protect and never allow.
func NoClass(*cluster.Job, []*cluster.Task) func(cluster.Class) bool {
	return func(cluster.Class) bool { return false }
}

// AddAdapter registers a cure for refusals of jobs whose minimum found no place.
//
// Combining: in profile order; the first that places the job's minimum wins. What
// any other did is rolled back before the next is asked.
func (h *Hooks) AddAdapter(fn Adapter) { add(h, &h.adapters, fn) }

// AddSweep registers something to be done at the end of a session.
//
// Combining: all are asked, in profile order, on one statement.
func (h *Hooks) AddSweep(fn Sweep) { add(h, &h.sweeps, fn) }

// AddStanding registers what is known of what queues should have. Nothing is
// decided by it: evictions and refusals are explained with it.
//
// Combining: in profile order; the first answer that is not nil counts.
func (h *Hooks) AddStanding(fn StandingRule) { add(h, &h.standings, fn) }

// AddEventHandler registers functions that hear virtual allocations and evictions.
//
// Combining: all hear everything, in profile order.
func (h *Hooks) AddEventHandler(handler EventHandler) { add(h, &h.handlers, handler) }

// Publish tells the engine which parameters the plugin's shape-form hooks work
// with from now on. A number other than the plugin's last starts a new epoch:
// what was remembered is worked out again when it is next needed.
func (h *Hooks) Publish(plugin string, parameters uint64) {
	h.publish(plugin, parameters)
}
