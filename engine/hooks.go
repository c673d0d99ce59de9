package engine

import (
	"github.com/berth-project/berth/cluster"
)

// The types of hooks. A plugin registers its hooks in OnSessionOpen.
//
// A shape-form hook gets a shape and a node. Its answer must depend only on these two, on
// the plugin's configuration and on the parameters that the plugin published (see Publish),
// because the engine remembers the answer: until the node changes or, for a static hook,
// until the spec of the node changes. The engine may still call the hook again before that,
// so it must give the same answer each time. A task-form hook may use anything, and is called
// every time.
//
// The comment of each Add method ends with a paragraph that begins with "Combining:" and
// says how the answers of several plugins are combined. docs/reference/hooks.md is generated
// from these comments.
type (
	// QueueOrder, SiblingOrder, JobOrder and TaskOrder compare two objects. A negative
	// answer puts the left one first, a positive one the right one. 0 leaves the order to
	// other hooks.
	QueueOrder   func(left, right *cluster.Queue) int
	SiblingOrder func(left, right Bid) int
	JobOrder     func(left, right *cluster.Job) int
	TaskOrder    func(left, right *cluster.Task) int

	// SurplusRule is called when there is no room for a surplus task of the job. It
	// returns whether other tasks may be evicted for it; lacks holds this task.
	SurplusRule func(job *cluster.Job, lacks []*cluster.Task) bool

	// PreFilter is called for a task before any node is considered. If it returns a
	// rejection, the task is not placed on any node. Nil lets the task pass.
	PreFilter func(*cluster.Task, *cluster.Job) *Rejection
	// ShapeFilter returns a rejection if the node cannot take tasks of the shape. Nil lets
	// the node pass.
	ShapeFilter func(*cluster.Shape, *cluster.Node) *Rejection
	// TaskFilter returns a rejection if the node cannot take the task. Nil lets the node
	// pass.
	TaskFilter func(*cluster.Task, *cluster.Job, *cluster.Node) *Rejection

	// ShapeScore, TaskScore and DeviceScore return a score from 0 to 100; higher is better.
	// Any other number fails the session with an error that names the plugin.
	ShapeScore  func(*cluster.Shape, *cluster.Node) float64
	TaskScore   func(*cluster.Task, *cluster.Job, *cluster.Node) float64
	DeviceScore func(*cluster.Shape, *cluster.Node, *cluster.Device) float64

	// GroupFilter returns a rejection if the node group cannot take a job that requests
	// whole nodes. Nil lets the group pass. The nodes are those of the group that passed the
	// node filters. It is called first with the nodes that would pass if no other task held
	// anything. A rejection of these means that waiting cannot help in this group. If the group
	// passes and has enough domains (see AddExclusion), it is called again with the nodes that
	// pass now. Both calls are repeated in each attempt to place the job, also for each plan
	// that is tried in a search for room. The filter must not keep or change the list of nodes.
	GroupFilter func(*cluster.Job, *cluster.WholeNodes, *cluster.Group, []*cluster.Node) *Rejection
	// GroupScore returns a score from 0 to 100 for a node group; higher is better. The nodes
	// are those of the group that pass the node filters now; the score must not keep or change
	// the list.
	GroupScore func(*cluster.Job, *cluster.WholeNodes, *cluster.Group, []*cluster.Node) float64

	// InstanceScore returns from 0 to 100 how much a replica is worth keeping when its Set
	// has too many. It is called for placed and pending replicas.
	InstanceScore func(*cluster.Job) float64

	// VictimRule is called for a job that cannot be placed, once for each search for victims;
	// lacks holds the tasks that its turn is for. It returns a function that decides whether a given victim
	// may be evicted for this job. Returning nil protects every victim.
	//
	// The returned function answers Allow if the victim may be evicted, NoOpinion to leave
	// that to other hooks, Protect if the victim must not be evicted, and NotYet if it must
	// not be evicted now, but the eviction of other victims may change that. It is called
	// for one victim at a time, while the victims before it in the plan hold nothing any
	// more. Victims are tried in any order, so an answer must depend on the State that the
	// plan leads to, and not on the order. Waiting jobs with the same queue, priority, shape
	// and sum of requests share what was found about nodes, so an answer must not depend on
	// other properties of the waiting job, such as its labels or its age.
	VictimRule func(forJob *cluster.Job, lacks []*cluster.Task) func(*Victim) Verdict

	// ClassRule returns a function that reports whether a VictimRule may allow any victim of
	// a class of jobs. If it returns false, the VictimRule must allow none of the class.
	ClassRule func(forJob *cluster.Job, lacks []*cluster.Task) func(cluster.Class) bool
	// QueueRule returns the queues in which a VictimRule may allow victims for the job. If
	// all is true, it may be any queue.
	QueueRule func(forJob *cluster.Job, lacks []*cluster.Task) (queues []string, all bool)

	// BalanceRule returns a function that measures how evenly queues hold what they deserve,
	// in the State at the time of the call. BalanceRule itself is called while the plan is
	// carried out. It returns nil if it accepts the plan without a comparison.
	BalanceRule func(forJob *cluster.Job, lacks []*cluster.Task, plan []*Victim) func() Balance

	// Adapter is called for a refused job. It tries to cure the refusal: it changes the
	// statement, for example by evictions, and calls Session.Place to place the job. It
	// returns what Place returned last, which is nil if the job is placed. If it returns a
	// refusal of the minimum, its changes are undone.
	Adapter func(*Statement, *cluster.Job, *Refusal) *Refusal

	// StandingRule returns the queue's fair share and quota, and what the queue uses and
	// requests, by resource. They are shown to users. It returns nil if the plugin does not
	// know the queue.
	StandingRule func(*cluster.Queue) []Standing

	// Sweep is called once per session, when all pending jobs have had their turns. Its
	// changes to the statement are committed.
	Sweep func(*Statement)
)

// Bid is a queue together with the job that it would place next: the first pending job of
// the queue or, if the queue has children, of the descendant that would have the next turn.
type Bid struct {
	Queue *cluster.Queue
	Job   *cluster.Job
}

// FrozenOrder returns a function that compares the bid, as it is now, with other bids as
// they are at the time of that call. A negative answer puts the frozen bid first, as in a
// SiblingOrder.
type FrozenOrder func(Bid) func(other Bid) int

// BidChanges returns the queues whose bids may compare differently with some other bid than at
// the previous call, although both bids have the same jobs as then. If all is set, any bid may.
type BidChanges func() (queues []*cluster.Queue, all bool)

// EventHandler has functions that are called at once for changes in a statement, before it
// is committed. AllocateFunc is called for each task that is placed, and for each evicted task
// that is marked as overdue, because its room counts as held again. DeallocateFunc is called
// for each task that is evicted, and for each reservation that is withdrawn. If a placement,
// an eviction or a withdrawal is undone, the opposite function is called (see Event.Undo). A
// handler cannot fail, and must be quick: most attempts are undone.
type EventHandler struct {
	AllocateFunc   func(*Event)
	DeallocateFunc func(*Event)
}

// Hooks holds the hooks of a session. Plugins register theirs in OnSessionOpen; a later
// registration fails the session.
type Hooks struct {
	opening   *weighted // the plugin that is in OnSessionOpen; nil if none is
	reopening *weighted // the plugin that is in Reopen; nil if none is
	fault     *fault
	publish   func(plugin string, parameters uint64)

	lastPlugin   *weighted            // the plugin that registered lastEquality
	lastEquality *equality            // of the shape-form hook or device score that was registered last
	filters      []*hook[ShapeFilter] // the shape filters in the order of their calls: see staticFirst
	registered
}

// registered is what plugins registered.
type registered struct {
	queueOrders      []hook[SiblingOrder]
	jobPriorities    []hook[JobOrder]
	jobOrders        []hook[JobOrder]
	surpluses        []hook[SurplusRule]
	taskOrders       []hook[TaskOrder]
	preFilters       []hook[PreFilter]
	shapeFilters     []hook[ShapeFilter]
	taskFilters      []hook[TaskFilter]
	shapeScores      []hook[ShapeScore]
	domainScores     []hook[domainScore]
	taskScores       []hook[TaskScore]
	deviceScores     []hook[DeviceScore]
	groupFilters     []hook[GroupFilter]
	groupScores      []hook[GroupScore]
	exclusions       []hook[ExclusionRule]
	instanceScores   []hook[InstanceScore]
	victims          [purposes][]hook[VictimRule]
	victimCosts      []hook[VictimCost]
	evictionPurposes []EvictionPurpose
	adapters         []hook[Adapter]
	sweeps           []hook[Sweep]
	standings        []hook[StandingRule]
	handlers         []hook[EventHandler]
	reservers        reservers
	learners         []hook[learner]
	observers        []hook[Observer]
	hints            hints
	equalLabels      []string // the labels of all declarations of EqualNodes
}

// staticFirst puts static filters before all others, and keeps the profile order otherwise.
func staticFirst(h *Hooks) {
	n := 0
	if len(h.filters) != len(h.shapeFilters) {
		h.filters = make([]*hook[ShapeFilter], len(h.shapeFilters))
	}
	for _, static := range [...]bool{true, false} {
		for i := range h.shapeFilters {
			f := &h.shapeFilters[i]
			if f.static != static {
				continue
			}
			if f.order = n; h.filters[n] != f {
				h.filters[n] = f
			}
			n++
		}
	}
}

// AddQueueOrder registers a comparison of queues. The queue that comes first places the next
// job. Since any two queues may be compared, all queues are compared again for every job,
// which is slow in large clusters: AddSiblingOrder avoids that.
//
// Combining: in profile order; the first answer that is not 0 decides, then the
// queue's name.
func (h *Hooks) AddQueueOrder(fn QueueOrder) {
	if fn == nil {
		misused(h, "AddQueueOrder", "the function is nil; register a function")
		return
	}
	add(h, &h.queueOrders, func(l, r Bid) int { return fn(l.Queue, r.Queue) }, fn == nil).origin = fn
}

// AddSiblingOrder registers a comparison of queues with the same parent, each with the job
// that it would place next (see Bid). To compare any two queues, the engine compares their
// ancestors below the first common one. The queue that comes first places the next job.
//
// While a session runs, the answer for two bids may change only with the jobs and with what
// the two queues and their descendants use: they are compared again only when one of these
// changes. Jobs that differ only in name and age must get the same answer. Session.Lacks
// returns the tasks that the job of a bid would place.
//
// Combining: as AddQueueOrder. If all comparisons are of this kind and all answer 0, the
// names of the siblings that were compared decide.
func (h *Hooks) AddSiblingOrder(fn SiblingOrder) {
	add(h, &h.queueOrders, fn, fn == nil).siblings = true
}

// AddFrozenOrder registers a second form of the comparison that the plugin registered last
// with AddSiblingOrder. The second form compares other bids with a bid as it was at an
// earlier time. As long as nothing changes, both forms must give the same answers, and these
// must define a total order of all bids. It is optional: if every comparison of queues has this form,
// patient sessions find the next job to be tried without giving each parked job a turn.
//
// Combining: as AddSiblingOrder.
func (h *Hooks) AddFrozenOrder(fn FrozenOrder) {
	if last := lastSiblingOrder(h, "AddFrozenOrder"); last != nil {
		last.freeze = fn
	}
}

// AddBidChanges registers which bids have changed since the previous call, for the comparison
// that the plugin registered last with AddSiblingOrder. Patient sessions call it before they
// compare bids, once, several times or not at all. It is optional: if every comparison of queues has
// it and a FrozenOrder, the order of queues is kept from session to session, and a session
// compares few of them.
//
// Combining: a bid has changed if at least one hook says so.
func (h *Hooks) AddBidChanges(fn BidChanges) {
	if last := lastSiblingOrder(h, "AddBidChanges"); last != nil {
		last.changes = fn
	}
}

// lastSiblingOrder returns the comparison that the plugin registered last. If that was not
// with AddSiblingOrder, it fails the session and returns nil.
func lastSiblingOrder(h *Hooks, caller string) *hook[SiblingOrder] {
	last := len(h.queueOrders) - 1
	if last < 0 || h.opening == nil || h.queueOrders[last].plugin != h.opening.name || !h.queueOrders[last].siblings {
		misused(h, caller, "the last comparison of queues is not an AddSiblingOrder of this plugin; call AddSiblingOrder first")
		return nil
	}
	return &h.queueOrders[last]
}

// AddJobPriority registers a comparison of jobs within a queue that decides before any
// other. The job that comes first is tried first. Of jobs that compare equal, those that
// lack their minimum come first; then surplus tasks are placed one at a time, always of the
// job that has the fewest. The answer for two jobs may change only when one of them changes,
// and not with time, because the order is kept from session to session.
//
// Combining: in profile order; the first answer that is not 0 decides, then what the
// jobs lack, then the comparisons of AddJobOrder.
func (h *Hooks) AddJobPriority(fn JobOrder) { add(h, &h.jobPriorities, fn, fn == nil) }

// AddSurplus registers a rule that is called when there is no room for a surplus task. If it
// returns true, the adapters may evict other tasks for it. Without such a hook, tasks are
// evicted only for the minimum of a job.
//
// Combining: tasks may be evicted if at least one hook returns true.
func (h *Hooks) AddSurplus(fn SurplusRule) { add(h, &h.surpluses, fn, fn == nil) }

// AddJobOrder registers a comparison of jobs within a queue that lack the same: both their
// minimum, or both a surplus task while they have equally many. The job that comes first is
// tried first. The answer for two jobs may change only when one of them changes, and not
// with time, because the order is kept from session to session.
//
// Combining: in profile order, after AddJobPriority; the first answer that is not 0 decides,
// then the job's ID.
func (h *Hooks) AddJobOrder(fn JobOrder) { add(h, &h.jobOrders, fn, fn == nil) }

// AddTaskOrder registers a comparison of tasks within a job. The task that comes first is
// placed first, such as the leader before its workers.
//
// Combining: in profile order; the first answer that is not 0 decides, then the
// order in which the job lists its tasks.
func (h *Hooks) AddTaskOrder(fn TaskOrder) { add(h, &h.taskOrders, fn, fn == nil) }

// AddPreFilter registers a check that needs no node, such as the limit of a queue. It is
// called for each task when the tasks before it are placed. If it returns a rejection, the
// task is not placed.
//
// Combining: in profile order; the first rejection counts, and no node is considered.
func (h *Hooks) AddPreFilter(fn PreFilter) { add(h, &h.preFilters, fn, fn == nil) }

// AddShapeFilter registers a shape-form filter. A node that it rejects is not feasible for
// tasks of the shape. The engine remembers the answer for a shape and a node until the node
// changes. It calls the filter again also for explanations, for parked jobs, to decide
// whether they are tried again, for jobs that request whole nodes, and in the search for
// room. If matters is not nil and returns false for a shape, the filter is not called for it
// and all nodes pass.
//
// Combining: a node must pass all filters. Static filters are called first, then the other
// shape-form filters, then the task-form filters, each kind in profile order. The first
// rejection of a node counts, with one exception: if it comes from a static filter and
// waiting or evicting may cure it (Cure.Transient), the first rejection of a static filter
// that neither waiting nor evicting can cure counts instead.
func (h *Hooks) AddShapeFilter(matters func(*cluster.Shape) bool, fn ShapeFilter) {
	addEqual(h, &h.shapeFilters, fn, fn == nil).shapes = matters
}

// AddStaticFilter registers a shape-form filter that depends on the spec of the node
// (labels, taints, capacities, kinds of device) and never on what tasks hold of it. The engine
// remembers the answer until the spec of the node changes. It calls the filter again in the
// same cases as an AddShapeFilter, and in each session for the nodes on which room is
// reserved: if the filter rejects such a node, the reservation is withdrawn.
//
// Combining: as AddShapeFilter, before all filters that are not static.
func (h *Hooks) AddStaticFilter(matters func(*cluster.Shape) bool, fn ShapeFilter) {
	k := addEqual(h, &h.shapeFilters, fn, fn == nil)
	k.shapes, k.static = matters, true
}

// AddTaskFilter registers a task-form filter. It is called each time that a node is
// considered for a task. A node that it rejects is not feasible for the task. If matters is
// not nil and returns false for a task, the filter is not called for it and all nodes pass.
//
// Combining: as AddShapeFilter, after all shape-form filters.
func (h *Hooks) AddTaskFilter(matters func(*cluster.Task, *cluster.Job) bool, fn TaskFilter) {
	add(h, &h.taskFilters, fn, fn == nil).tasks = matters
}

// AddShapeScore registers a shape-form score. It is called for a shape and a feasible node
// when the node has changed since the last call. The task is placed on the feasible node
// with the highest sum. If matters is not nil and returns false for a shape, the score is
// left out for all nodes.
//
// Combining: the scores of all forms are multiplied with the weights of their plugins and
// added. The highest sum wins; of equal sums, the lowest node name.
func (h *Hooks) AddShapeScore(matters func(*cluster.Shape) bool, fn ShapeScore) {
	addEqual(h, &h.shapeScores, fn, fn == nil).shapes = matters
}

// AddStaticScore registers a shape-form score that depends on the spec of the node and never
// on what tasks hold of it. It is called again only when the spec of the node changes.
//
// Combining: as AddShapeScore.
func (h *Hooks) AddStaticScore(matters func(*cluster.Shape) bool, fn ShapeScore) {
	k := addEqual(h, &h.shapeScores, fn, fn == nil)
	k.shapes, k.static = matters, true
}

// AddTaskScore registers a task-form score. It is called for each task and each feasible node
// that may still have the highest sum. If matters is not nil and returns false for a task,
// the score is left out for all nodes.
//
// Combining: as AddShapeScore.
func (h *Hooks) AddTaskScore(matters func(*cluster.Task, *cluster.Job) bool, fn TaskScore) {
	add(h, &h.taskScores, fn, fn == nil).tasks = matters
}

// AddBoundedScore registers a task-form score fn together with a shape-form upper bound of
// it. The engine remembers the bound, ranks nodes by it, and calls fn only for nodes that
// may still have the highest sum, which is faster than AddTaskScore. A score above its bound
// fails the session. If matters is not nil and returns false for a shape, the score is left
// out for all nodes.
//
// Combining: as AddShapeScore; the bound itself adds nothing.
func (h *Hooks) AddBoundedScore(matters func(*cluster.Shape) bool, bound ShapeScore, fn TaskScore) {
	b := addEqual(h, &h.shapeScores, bound, bound == nil)
	b.shapes, b.isBound = matters, true
	k := add(h, &h.taskScores, fn, fn == nil)
	k.upperBound = bound
	if matters != nil {
		k.tasks = func(t *cluster.Task, _ *cluster.Job) bool { return matters(t.Shape) }
	}
}

// AddDeviceScore registers a score for the devices of a node. It is called when a task is
// placed on the node: the task gets the devices with the highest sums. A node score that
// depends on the choice of devices calls Session.Devices.
//
// Combining: the scores are multiplied with the weights of their plugins and added. The
// highest sums win; of equal sums, the lowest device index.
func (h *Hooks) AddDeviceScore(fn DeviceScore) { addEqual(h, &h.deviceScores, fn, fn == nil) }

// AddGroupFilter registers a filter of node groups. It is called for jobs that request whole
// nodes of one group, in each attempt to place them. A group that it rejects is not tried. It
// is not called for a job that must be placed on the group that has other jobs of its set, or
// tasks of its own.
//
// Combining: in profile order; the first rejection of a group counts.
func (h *Hooks) AddGroupFilter(fn GroupFilter) { add(h, &h.groupFilters, fn, fn == nil) }

// AddGroupScore registers a score of node groups. It is called for jobs that request whole
// nodes of one group, for the groups that pass all filters.
//
// Combining: the scores are multiplied with the weights of their plugins and added. Groups
// are tried from the highest sum down, and of equal sums in the order of their keys, until
// the job is placed in one.
func (h *Hooks) AddGroupScore(fn GroupScore) { add(h, &h.groupScores, fn, fn == nil) }

// AddShapeGroupScore is like Hooks.AddGroupScore, but the score is called only for jobs with
// tasks of shapes for which matters returns true.
//
// Combining: as AddGroupScore.
func AddShapeGroupScore(h *Hooks, matters func(*cluster.Shape) bool, fn GroupScore) {
	add(h, &h.groupScores, fn, fn == nil || matters == nil).shapes = matters
}

// AddInstanceScore registers a score of replicas. It is called when a Set has more replicas
// than it should have. The replicas with the lowest sums are retired.
//
// Combining: the scores are multiplied with the weights of their plugins and added. The
// lowest sum is retired first; of equal sums the newest job, then the one with the lower ID.
func (h *Hooks) AddInstanceScore(fn InstanceScore) { add(h, &h.instanceScores, fn, fn == nil) }

// AddAdapter registers a function that tries to cure refusals. It is called when the minimum
// of a job cannot be placed, and for a surplus task if a hook of AddSurplus allows it. If it
// returns no refusal of the minimum, its changes are committed with the placement of the
// job. An adapter that returns nil without having placed the job fails the session.
//
// Combining: in profile order; the first adapter that places the job wins. The changes of
// any other are undone before the next adapter is called.
func (h *Hooks) AddAdapter(fn Adapter) { add(h, &h.adapters, fn, fn == nil) }

// AddSweep registers a function that is called at the end of a session, when all pending
// jobs have had their turns. Its changes to the statement are committed.
//
// Combining: all are called, in profile order, with the same statement.
func (h *Hooks) AddSweep(fn Sweep) { add(h, &h.sweeps, fn, fn == nil) }

// AddStanding registers a function that returns the fair share of a queue and what it uses.
// It is called when an eviction or a refusal is explained, and influences no decision.
//
// Combining: in profile order; the first answer that is not nil counts.
func (h *Hooks) AddStanding(fn StandingRule) { add(h, &h.standings, fn, fn == nil) }

// AddEventHandler registers functions that are called for each placement, eviction, withdrawn
// reservation and overdue task in a statement, at once and before it is committed. A plugin that
// keeps sums of what tasks use updates them there.
//
// Combining: all handlers are called for every event, in profile order.
func (h *Hooks) AddEventHandler(handler EventHandler) { add(h, &h.handlers, handler, false) }

// Publish declares, as a number such as a hash, which parameters the plugin's static and other
// shape-form hooks use from now on. If the number differs from the last one that the plugin published,
// all remembered answers become invalid, and are computed again when they are next needed.
// Refused jobs are tried again as well.
func (h *Hooks) Publish(plugin string, parameters uint64) {
	h.publish(parametersKey(h, plugin), parameters)
}

// parametersKey returns the name under which the parameters of the plugin are kept. It differs
// from the name of the plugin in OnSessionOpen and Reopen of a plugin that has a name twice.
func parametersKey(h *Hooks, plugin string) string {
	if p := calledNow(h); p != nil && p.key != "" && p.Name() == plugin {
		return p.key
	}
	return plugin
}
