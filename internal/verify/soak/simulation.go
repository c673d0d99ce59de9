package soak

// simulation is a site with its scheduler, and the parts that act on them. doc.go
// lists the parts.
type simulation struct {
	dice   *dice
	counts *Counts
	site   *site

	scheduler *scheduler
	executor  *executor
	recovery  *recovery

	jobs        *jobEvents
	models      *modelEvents
	tasks       *taskEvents
	nodes       *nodeEvents
	queues      *queueEvents
	sessions    *sessions
	statements  *statements
	comparisons *comparisons

	check *stateCheck
}

// traits is what differs between simulations from the beginning.
type traits struct {
	maxJobs int // the number of jobs at a time
	// unconstrained simulations have no constraints such as selectors or taints: only
	// room limits where tasks can be placed.
	unconstrained bool
	// restartsGangs says that a controller restarts gangs that run below their
	// minimum. Otherwise the scheduler has to evict or complete them.
	restartsGangs bool
}

func drawTraits(d *dice) traits {
	t := traits{maxJobs: 4 + d.roll(13)}
	if d.chance(10) {
		t.maxJobs += 8
	}
	t.restartsGangs, t.unconstrained = d.chance(50), d.chance(60)
	return t
}

// newSimulation connects the parts. Each part gets only parts that are below it.
func newSimulation(d *dice, t traits) *simulation {
	counts, site, history := &Counts{}, newSite(), &history{}
	scheduler := &scheduler{counts: counts}
	executor := &executor{d, site, scheduler, history, counts}
	controller := &controller{t.restartsGangs, site, scheduler, executor, history}
	recovery := &recovery{d, site, scheduler, history, counts}
	workload := &workload{maxJobs: t.maxJobs, site: site, scheduler: scheduler, history: history}
	return &simulation{
		dice: d, counts: counts, site: site, scheduler: scheduler, executor: executor, recovery: recovery,
		jobs:        &jobEvents{d, &jobMaker{d, t.unconstrained}, site, scheduler, workload, controller},
		models:      &modelEvents{d, &modelMaker{d}, site, scheduler, workload},
		tasks:       &taskEvents{d, site, scheduler, executor, controller},
		nodes:       &nodeEvents{d, &nodeMaker{d, t.unconstrained}, site, scheduler, controller},
		queues:      &queueEvents{d, site, scheduler},
		sessions:    &sessions{d, site, scheduler, executor, recovery, history, counts},
		statements:  &statements{d, site, scheduler, executor, counts},
		comparisons: &comparisons{d, site, scheduler, counts},
		check:       &stateCheck{site, scheduler},
	}
}

// start starts the scheduler of a small cluster.
func (s *simulation) start() error {
	for _, q := range firstQueues() {
		s.site.queues[q.Name] = q
	}
	if err := s.recovery.startFromSite(); err != nil {
		return err
	}
	for range 3 + s.dice.roll(6) {
		if err := s.nodes.add(); err != nil {
			return err
		}
	}
	return nil
}

// stepKind is one kind of step. Its probability is its weight divided by the sum of
// all weights.
type stepKind struct {
	name   string
	weight int
	do     func() error
}

// stepKinds lists what a step may be.
func (s *simulation) stepKinds() []stepKind {
	return []stepKind{
		{"a job arrives", 18, s.jobs.add},
		{"a model arrives", 4, s.models.add},
		{"a model is scaled", 6, s.models.scale},
		{"a job ends", 9, s.jobs.remove},
		{"a job runs already", 4, s.jobs.addRunning},
		{"a job changes", 4, s.jobs.change},
		{"a node is added", 4, s.nodes.add},
		{"a node is lost", 2, s.nodes.lose},
		{"a node changes", 7, s.nodes.change},
		{"the memory of devices is read", 4, s.nodes.readMemory},
		{"a queue changes", 6, s.queues.change},
		{"a budget changes", 2, s.queues.changeBudget},
		{"time passes", 10, s.passTime},
		{"tasks stop or end", 12, s.tasks.stopEvicted},
		{"a session", 20, s.sessions.schedule},
		{"tasks are evicted", 2, s.statements.evictAndPlace},
		{"the scheduler restarts", 1, s.recovery.crash},
		{"bindings are answered", 8, s.tasks.answerBindings},
		{"the log is replayed", 1, s.comparisons.replayLog},
		{"index and scan are compared", 1, s.comparisons.compareIndexAndScan},
		{"a statement is rolled back", 2, s.statements.rollBack},
		{"the cluster settles", 1, s.comparisons.checkSettling},
	}
}

// passTime advances the time.
func (s *simulation) passTime() error {
	s.site.now += pick(s.dice, []int64{1, 10, 40, 120, 600}) * second
	return nil
}

// drawStep returns a random kind of step.
func drawStep(d *dice, kinds []stepKind) stepKind {
	sum := 0
	for _, k := range kinds {
		sum += k.weight
	}
	at := d.roll(sum)
	for _, k := range kinds {
		if at -= k.weight; at < 0 {
			return k
		}
	}
	panic("no kind of step has the number that was drawn")
}
