package engine

import (
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
	// QueueOrderFn, SiblingOrderFn, JobOrderFn and TaskOrderFn compare: negative puts
	// the left one first, 0 leaves it to others.
	QueueOrderFn   func(left, right *cluster.Queue) int
	SiblingOrderFn func(left, right Bid) int
	JobOrderFn     func(left, right *cluster.Job) int
	TaskOrderFn    func(left, right *cluster.Task) int

	// SurplusFn says whether others may be evicted for the task that the job wants
	// beyond its minimum.
	SurplusFn func(job *cluster.Job, lacks []*cluster.Task) bool

	// PrePredicateFn turns a task down before any node is looked at; nil lets it pass.
	PrePredicateFn func(*cluster.Task, *cluster.Job) *Rejection
	// ShapePredicateFn turns a node down for every task of the shape; nil lets it pass.
	ShapePredicateFn func(*cluster.Shape, *cluster.Node) *Rejection
	// PredicateFn turns a node down for one task; nil lets it pass.
	PredicateFn func(*cluster.Task, *cluster.Job, *cluster.Node) *Rejection

	// ShapeOrderFn, NodeOrderFn and GpuOrderFn score from 0 to 100; anything else
	// fails the session and names the plugin.
	ShapeOrderFn func(*cluster.Shape, *cluster.Node) float64
	NodeOrderFn  func(*cluster.Task, *cluster.Job, *cluster.Node) float64
	GpuOrderFn   func(*cluster.Shape, *cluster.Node, *cluster.Device) float64

	// GroupPredicateFn turns a group down for a job that wants whole nodes; nodes
	// are those of the group that passed the node predicates. It is asked twice: about
	// the nodes that would do if everybody else were gone, and about those that do now.
	GroupPredicateFn func(*cluster.Job, *cluster.WholeNodes, *cluster.Group, []*cluster.Node) *Rejection
	// GroupOrderFn scores a group from 0 to 100; nodes are those that do now.
	GroupOrderFn func(*cluster.Job, *cluster.WholeNodes, *cluster.Group, []*cluster.Node) float64

	// InstanceOrderFn says from 0 to 100 how much a job of a set, placed or not,
	// should be kept when the set shrinks.
	InstanceOrderFn func(*cluster.Job) float64

	// VictimFn prepares to judge which victims may leave for the job, which lacks
	// these tasks for its minimum; a nil answer protects all. The function that it
	// returns gives Consent where the victim should leave, "" where it does not object,
	// and otherwise the reason why not, marked by NotYet where the eviction of others
	// may end it. It is asked about one victim at a time, while those of the plan that
	// come before it hold nothing any more. Victims are tried in any order, so that a
	// plan is judged by the State that it ends in.
	VictimFn func(forJob *cluster.Job, lacks []*cluster.Task) func(*Victim) Reason

	// ClassFn prepares to say of classes of jobs whether a VictimFn might consent to
	// any of them: where it says no, the VictimFn consents to none.
	ClassFn func(forJob *cluster.Job, lacks []*cluster.Task) func(cluster.Class) bool

	// BalanceFn prepares to measure how evenly the queues hold what they deserve. It is
	// asked while the plan is carried out, and answers nil where the plan is fair
	// without any comparison.
	BalanceFn func(forJob *cluster.Job, lacks []*cluster.Task, plan []*Victim) func() Balance

	// AdaptFn tries to cure a refusal: it proposes changes to the statement and
	// lets Session.Place judge them. It returns what Place said last: nil when the
	// job is placed.
	AdaptFn func(*Statement, *cluster.Job, *Refusal) *Refusal

	// StandingFn says how a queue stands with what it asks for or holds, to be told;
	// nil where there is nothing to be said.
	StandingFn func(*cluster.Queue) []Standing

	// SweepFn acts once, when all pending jobs have had their turn: what it does to
	// the statement is committed.
	SweepFn func(*Statement)
)

// Bid is a queue whose turn it may be, and the job that it would give: the first in
// its line, or the first in the line of the queue below it whose turn it would be.
type Bid struct {
	Queue *cluster.Queue
	Job   *cluster.Job
}

// FrozenOrderFn prepares to compare other bids with the bid as it stands now, whatever is
// decided meanwhile: negative puts the frozen bid first, as in a SiblingOrderFn.
type FrozenOrderFn func(Bid) func(other Bid) int

// EventHandler hears every virtual allocation and eviction, and every undo of
// one as its opposite. Handlers cannot fail and must be quick.
type EventHandler struct {
	AllocateFunc   func(*Event)
	DeallocateFunc func(*Event)
}

type hook[F any] struct {
	fn     F
	plugin string
	weight int64
	// For which shapes, or tasks, the hook has anything to say; nil: all.
	shapes   func(*cluster.Shape) bool
	tasks    func(*cluster.Task, *cluster.Job) bool
	static   bool
	siblings bool          // of a comparison of queues: asked about queues with the same parent alone
	freeze   FrozenOrderFn // of such a comparison; nil: bids cannot be compared later
	bound    bool          // of a score that is registered with it: ranked by, and not itself a score
	most     ShapeOrderFn  // the bound of a task-form score; nil: 100
	class    ClassFn       // of a VictimFn: which classes it might consent to; nil: any
	last     *LastResort   // of a VictimFn: what replaces it where no plan was found
	order    int           // place among the hooks of its kind, in the order they are asked
}

type hooks struct {
	queueOrders     []hook[SiblingOrderFn]
	jobPriorities   []hook[JobOrderFn]
	jobOrders       []hook[JobOrderFn]
	surpluses       []hook[SurplusFn]
	taskOrders      []hook[TaskOrderFn]
	prePredicates   []hook[PrePredicateFn]
	shapePredicates []hook[ShapePredicateFn]
	predicates      []hook[PredicateFn]
	shapeOrders     []hook[ShapeOrderFn]
	nodeOrders      []hook[NodeOrderFn]
	gpuOrders       []hook[GpuOrderFn]
	groupPredicates []hook[GroupPredicateFn]
	groupOrders     []hook[GroupOrderFn]
	exclusions      []hook[ExclusionFn]
	instanceOrders  []hook[InstanceOrderFn]
	victims         [purposes][]hook[VictimFn]
	means           []Means
	adapters        []hook[AdaptFn]
	sweeps          []hook[SweepFn]
	standings       []hook[StandingFn]
	handlers        []EventHandler
}

// staticFirst puts static filters before the others, each kind in profile order.
func (h *hooks) staticFirst() {
	slices.SortStableFunc(h.shapePredicates, func(a, b hook[ShapePredicateFn]) int {
		switch {
		case a.static == b.static:
			return 0
		case a.static:
			return -1
		}
		return 1
	})
	for i := range h.shapePredicates {
		h.shapePredicates[i].order = i
	}
}

func add[F any](s *Session, list *[]hook[F], fn F) *hook[F] {
	if s.opening == nil {
		s.fault.fail("engine", "a hook was registered after the session had opened; register hooks in OnSessionOpen")
		return &hook[F]{}
	}
	*list = append(*list, hook[F]{fn: fn, plugin: s.opening.Name(), weight: s.opening.weight, order: len(*list)})
	return &(*list)[len(*list)-1]
}

// AddQueueOrderFn registers a comparison of queues: whose turn it is. Queues are
// compared anew for every job.
//
// Combining: in profile order; the first answer that is not 0 decides, then the
// queue's name.
func (s *Session) AddQueueOrderFn(fn QueueOrderFn) {
	add(s, &s.hooks.queueOrders, func(l, r Bid) int { return fn(l.Queue, r.Queue) })
}

// AddSiblingOrderFn registers a comparison of queues with the same parent, each with
// the job that it would give: queues are compared where their branches part. While a
// session runs, the answer for two siblings may change only with what they and the
// queues below them use, and with the jobs: they are compared again when one of these
// changes. Jobs that nothing tells apart but their names and ages must be answered
// alike. Session.Lacks has the tasks that the job would be given room for.
//
// Combining: as AddQueueOrderFn. Where all comparisons are of this kind, the name
// that decides last is that of the queue where the branches part.
func (s *Session) AddSiblingOrderFn(fn SiblingOrderFn) {
	add(s, &s.hooks.queueOrders, fn).siblings = true
}

// AddFrozenOrderFn registers how the comparison of siblings that the plugin registered
// last compares with a bid as it stood before. Until something changes, its answers must
// be those of the comparison, and these must put all bids in one order. It is optional:
// where all comparisons of queues have it, patient sessions find the next job to be tried
// without giving each parked job its turn.
//
// Combining: as AddSiblingOrderFn.
func (s *Session) AddFrozenOrderFn(fn FrozenOrderFn) {
	last := len(s.hooks.queueOrders) - 1
	if last < 0 || s.opening == nil || s.hooks.queueOrders[last].plugin != s.opening.Name() || !s.hooks.queueOrders[last].siblings {
		s.fault.fail("engine", "AddFrozenOrderFn is called after AddSiblingOrderFn of the same plugin; there is none")
		return
	}
	s.hooks.queueOrders[last].freeze = fn
}

// AddJobPriorityFn registers a comparison of jobs within a queue that counts before
// all others. Of jobs that it does not tell apart, those that lack their minimum come
// first; then tasks beyond the minimum are dealt in turn, to the job that has the
// fewest. The answer for two jobs may change only when one of them does, and not with
// time: jobs are kept in order from session to session.
//
// Combining: in profile order; the first answer that is not 0 decides, then what the
// jobs lack, then the comparisons of AddJobOrderFn.
func (s *Session) AddJobPriorityFn(fn JobOrderFn) { add(s, &s.hooks.jobPriorities, fn) }

// AddSurplusFn registers a say over whether room may be made for a task beyond its
// job's minimum.
//
// Combining: room is made if some hook says so.
func (s *Session) AddSurplusFn(fn SurplusFn) { add(s, &s.hooks.surpluses, fn) }

// AddJobOrderFn registers a comparison of jobs within a queue that want the same:
// their minimum, or as many tasks more. The answer for two jobs may change only when
// one of them does, and not with time: jobs are kept in order from session to session.
//
// Combining: in profile order; the first answer that is not 0 decides, then the
// job's ID.
func (s *Session) AddJobOrderFn(fn JobOrderFn) { add(s, &s.hooks.jobOrders, fn) }

// AddTaskOrderFn registers a comparison of tasks within a job.
//
// Combining: in profile order; the first answer that is not 0 decides, then the
// order in which the tasks were written.
func (s *Session) AddTaskOrderFn(fn TaskOrderFn) { add(s, &s.hooks.taskOrders, fn) }

// AddPrePredicateFn registers a check that needs no node. It is asked anew for
// each task, after the tasks before it were placed.
//
// Combining: in profile order; the first rejection counts, and no node is looked at.
func (s *Session) AddPrePredicateFn(fn PrePredicateFn) { add(s, &s.hooks.prePredicates, fn) }

// AddShapePredicateFn registers a shape-form filter. Matters may be nil; where it
// answers false the filter is taken to pass.
//
// Combining: all must pass. Static filters are asked first, then the other
// shape-form ones, then the task-form ones, each kind in profile order; the first
// rejection of a node counts. Where waiting cures the first and it is a static
// filter's, the first static one that waiting does not cure counts instead.
func (s *Session) AddShapePredicateFn(matters func(*cluster.Shape) bool, fn ShapePredicateFn) {
	add(s, &s.hooks.shapePredicates, fn).shapes = matters
}

// AddStaticPredicateFn registers a shape-form filter that looks at what the node
// is (labels, taints, capacities, kinds of device) and never at what is held of
// it. It is asked again only when the node itself changes.
//
// Combining: as AddShapePredicateFn, before all filters that are not static.
func (s *Session) AddStaticPredicateFn(matters func(*cluster.Shape) bool, fn ShapePredicateFn) {
	h := add(s, &s.hooks.shapePredicates, fn)
	h.shapes, h.static = matters, true
}

// AddPredicateFn registers a task-form filter. Matters may be nil; where it
// answers false the filter is taken to pass.
//
// Combining: as AddShapePredicateFn, after all filters of the shape form.
func (s *Session) AddPredicateFn(matters func(*cluster.Task, *cluster.Job) bool, fn PredicateFn) {
	add(s, &s.hooks.predicates, fn).tasks = matters
}

// AddShapeOrderFn registers a shape-form score. Matters may be nil; where it
// answers false the score is left out for every node alike.
//
// Combining: node scores of all forms are multiplied with their plugin's weight
// and added; the highest sum wins, ties go to the lowest node name.
func (s *Session) AddShapeOrderFn(matters func(*cluster.Shape) bool, fn ShapeOrderFn) {
	add(s, &s.hooks.shapeOrders, fn).shapes = matters
}

// AddStaticOrderFn registers a shape-form score that looks at what the node is
// and never at what is held of it. It is asked again only when the node itself changes.
//
// Combining: as AddShapeOrderFn.
func (s *Session) AddStaticOrderFn(matters func(*cluster.Shape) bool, fn ShapeOrderFn) {
	h := add(s, &s.hooks.shapeOrders, fn)
	h.shapes, h.static = matters, true
}

// AddNodeOrderFn registers a task-form score. Matters may be nil; where it
// answers false the score is left out for every node alike.
//
// Combining: as AddShapeOrderFn.
func (s *Session) AddNodeOrderFn(matters func(*cluster.Task, *cluster.Job) bool, fn NodeOrderFn) {
	add(s, &s.hooks.nodeOrders, fn).tasks = matters
}

// AddBoundedOrderFn registers a task-form score and, in the shape form, the most
// that any task of the shape may score on the node. The bound is remembered, nodes
// are ranked by it, and the score is asked only about those that may still win. A
// score above its bound fails the session. Matters may be nil; where it answers
// false the score is left out for every node alike.
//
// Combining: as AddShapeOrderFn; the bound adds nothing.
func (s *Session) AddBoundedOrderFn(matters func(*cluster.Shape) bool, bound ShapeOrderFn, fn NodeOrderFn) {
	b := add(s, &s.hooks.shapeOrders, bound)
	b.shapes, b.bound = matters, true
	h := add(s, &s.hooks.nodeOrders, fn)
	h.most = bound
	if matters != nil {
		h.tasks = func(t *cluster.Task, _ *cluster.Job) bool { return matters(t.Shape) }
	}
}

// AddGpuOrderFn registers a score for the devices of a node. It decides which of
// them a task gets; a policy whose node score depends on that asks Session.Devices.
//
// Combining: multiplied with the plugin's weight and added; the highest sums win,
// ties go to the lowest device index.
func (s *Session) AddGpuOrderFn(fn GpuOrderFn) { add(s, &s.hooks.gpuOrders, fn) }

// AddGroupPredicateFn registers a filter over groups.
//
// Combining: in profile order; the first rejection of a group counts.
func (s *Session) AddGroupPredicateFn(fn GroupPredicateFn) { add(s, &s.hooks.groupPredicates, fn) }

// AddGroupOrderFn registers a score for groups.
//
// Combining: multiplied with the plugin's weight and added; groups are tried from
// the highest sum down, ties in the order of their keys, until one places the job.
func (s *Session) AddGroupOrderFn(fn GroupOrderFn) { add(s, &s.hooks.groupOrders, fn) }

// AddInstanceOrderFn registers a keep-preference for scale-down.
//
// Combining: multiplied with the plugin's weight and added; the lowest sum goes
// first, then the newest job, then by ID.
func (s *Session) AddInstanceOrderFn(fn InstanceOrderFn) { add(s, &s.hooks.instanceOrders, fn) }

// AddReclaimableFn registers a say over who goes for jobs that reclaim their share:
// it consents, objects, or leaves it to others.
//
// Combining: a victim goes if some hook consents and none objects; of those who
// do, the first in profile order gives the reason.
func (s *Session) AddReclaimableFn(fn VictimFn) { add(s, &s.hooks.victims[Reclaim], fn) }

// AddPreemptableFn registers a say over who goes for jobs that matter more.
//
// Combining: as AddReclaimableFn.
func (s *Session) AddPreemptableFn(fn VictimFn) { add(s, &s.hooks.victims[Preempt], fn) }

// AddMovableFn registers a say over who is moved to another node.
//
// Combining: as AddReclaimableFn.
func (s *Session) AddMovableFn(fn VictimFn) { add(s, &s.hooks.victims[Move], fn) }

// NarrowVictims says which classes of jobs the plugin's hook of the purpose might
// consent to. Where all hooks of a purpose are narrowed, only nodes with jobs of
// such classes are looked at.
//
// Combining: a class is looked at if some hook might consent.
func (s *Session) NarrowVictims(p Purpose, fn ClassFn) {
	for i := range s.hooks.victims[p] {
		if h := &s.hooks.victims[p][i]; s.opening != nil && h.plugin == s.opening.Name() {
			h.class = fn
		}
	}
}

// LastResort is what a plugin's hook of a purpose is replaced by in a second search,
// where the first found no plan.
type LastResort struct {
	Victims VictimFn
	Classes ClassFn
	// Balance compares the State that a plan ends in with the State without the plan:
	// a plan that is not lower is not taken. In both, the room that is idle is given to
	// pending jobs and to the victims first, in the order of their turns.
	Balance BalanceFn
}

// Balance is how evenly queues hold what they deserve at one time.
type Balance interface {
	// Below reports whether the queues hold what they deserve more evenly than in the other.
	Below(Balance) bool
}

// AddLastResort registers what replaces the plugin's hook of the purpose where no plan
// was found.
//
// Combining: as AddReclaimableFn; a plan must be lower by every Balance.
func (s *Session) AddLastResort(p Purpose, last LastResort) {
	for i := range s.hooks.victims[p] {
		if h := &s.hooks.victims[p][i]; s.opening != nil && h.plugin == s.opening.Name() {
			h.last = &last
		}
	}
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
func (s *Session) AddMeans(p Purpose, why Reason) {
	if len(s.hooks.means) == 0 {
		s.AddAdapter(s.MakeRoom)
	}
	s.hooks.means = append(s.hooks.means, Means{p, why})
}

// NoClass is the ClassFn of hooks that object and never consent.
func NoClass(*cluster.Job, []*cluster.Task) func(cluster.Class) bool {
	return func(cluster.Class) bool { return false }
}

// AddAdapter registers a cure for refusals of jobs whose minimum found no place.
//
// Combining: in profile order; the first that places the job's minimum wins. What
// any other did is rolled back before the next is asked.
func (s *Session) AddAdapter(fn AdaptFn) { add(s, &s.hooks.adapters, fn) }

// AddSweepFn registers something to be done at the end of a session.
//
// Combining: all are asked, in profile order, on one statement.
func (s *Session) AddSweepFn(fn SweepFn) { add(s, &s.hooks.sweeps, fn) }

// AddStandingFn registers somebody who knows what queues should have. Nothing is
// decided by it: evictions and refusals are explained with it.
//
// Combining: in profile order; the first answer that is not nil counts.
func (s *Session) AddStandingFn(fn StandingFn) { add(s, &s.hooks.standings, fn) }

// AddEventHandler registers an ear for virtual allocations and evictions.
//
// Combining: all hear everything, in profile order.
func (s *Session) AddEventHandler(h EventHandler) { s.hooks.handlers = append(s.hooks.handlers, h) }

// Publish tells the engine which parameters the plugin's shape-form hooks work
// with from now on. A number other than the plugin's last starts a new epoch:
// what was remembered is worked out again when it is next needed.
func (s *Session) Publish(plugin string, parameters uint64) {
	s.engine.index.publish(plugin, parameters)
}
