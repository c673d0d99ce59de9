// Package scheduler is the loop of berth-scheduler: it turns what informers deliver into facts
// about a State, runs sessions of the engine, and carries out their decisions.
//
//	informers ──▶ facts ──▶ live.Leader ──▶ decisions ──▶ bind.Sender ──▶ API server
//	    ▲                                                                    │
//	    └────────────────────────────── watch ◀──────────────────────────────┘
//
// One goroutine owns the State. It runs a session when facts have arrived or a time has come
// that the engine named, and never waits for the API server: requests are sent by others, and
// their results come back as facts.
package scheduler

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/internal/live"
	"github.com/berth-project/berth/kube/internal/bind"
	"github.com/berth-project/berth/kube/internal/facts"
	"github.com/berth-project/berth/kube/internal/history"
	"github.com/berth-project/berth/kube/internal/intree"
	"github.com/berth-project/berth/kube/internal/metrics"
	"github.com/berth-project/berth/kube/internal/report"
	"github.com/berth-project/berth/kube/internal/trace"
	"github.com/berth-project/berth/kube/internal/watch"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
)

// Options of a Scheduler.
type Options struct {
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	Mapper  meta.ResettableRESTMapper
	// Registry has the plugins of the profiles. The filters of Kubernetes are added to it.
	Registry *engine.Registry
	// Profiles are the profiles of the engine. If they have names, these are the scheduler
	// names of Feed.
	Profiles []engine.NamedProfile
	// Configuration is a configuration with these profiles, for the input of sessions; nil means
	// that of the default profile.
	Configuration *v1alpha1.SchedulerConfiguration
	Feed          feed.Options
	// Held reports whether this process is the leader. Sessions run, and requests are sent,
	// only while it is.
	Held func() bool
	// DryRun makes the scheduler decide and log, and send nothing.
	DryRun   bool
	Parallel int           // how many bindings and evictions may be under way at once; 0 means 32
	Hold     time.Duration // how long room is reserved for a pod for which others are evicted; 0 means 5 minutes
	// EvictionRate is how many evictions are sent per second; 0 means 10. EvictionBurst is how
	// many may be sent at once; 0 means 20.
	EvictionRate  float32
	EvictionBurst int
	Events        events.EventRecorder
	Log           *slog.Logger
	Tracer        *trace.Tracer // makes spans of sessions; nil means none
}

// Scheduler is the loop and what it owns. Use New.
type Scheduler struct {
	options    Options
	watch      *watch.Watch
	objects    *objects
	engine     *engine.Engine
	phrases    explain.Phrases
	leader     *live.Leader
	sender     *bind.Sender
	reporter   *report.Reporter
	dispatcher dispatcher
	health     Health
	metrics    *metrics.Metrics
	sessions   Sessions

	promised map[cluster.TaskRef]bool
	waiters  waiters
	barrier  barrier
	dryRun   dryRun
	arrived  []types.UID // pods that arrived since the last session
	// doubleBookings are those that were reported.
	doubleBookings doubleBookings
	recovered      bool  // what an earlier leader left was read
	changed        bool  // facts have arrived since the last session
	nextWake       int64 // when the engine asked for a session; 0: never

	mu       sync.Mutex
	results  []bind.Result
	returned chan struct{} // has a value after results have arrived

	questions chan func() // are called by the loop, between two turns
}

// ring is how many changes are kept for readers. A reader that is further behind copies the
// State. Each change keeps a job or a task alive that may be gone.
const ring = 1 << 12

// New returns a Scheduler and starts its informers. Run must be called.
func New(o Options) (*Scheduler, error) {
	if o.Hold == 0 {
		o.Hold = 5 * time.Minute
	}
	if o.EvictionRate == 0 {
		o.EvictionRate = 10
	}
	if o.EvictionBurst == 0 {
		o.EvictionBurst = 20
	}
	s := &Scheduler{options: o, promised: map[cluster.TaskRef]bool{}, returned: make(chan struct{}, 1), questions: make(chan func())}
	store := intree.NewStore()
	store.UseClient(o.Client)
	kept := history.New()
	store.Observe(kept.Put)
	if err := o.Registry.RegisterPluginBuilder(intree.Name, intree.Builder(store)); err != nil {
		return nil, err
	}
	var err error
	if s.engine, err = engine.NewProfiles(o.Registry, o.Profiles); err != nil {
		return nil, err
	}
	s.phrases = explain.PhrasesOf(s.engine)
	s.leader = live.NewLeader(live.Options{State: cluster.NewState(), Engine: s.engine, NewEngine: s.readersEngine, Log: kept, Ring: ring})
	s.sessions = Sessions{kept, s.leader, s.engine, store, s.phrases, o.Configuration}
	s.objects = newObjects(o.Feed, store)
	if s.watch, err = watch.Start(watch.Options{
		Client: o.Client, Dynamic: o.Dynamic, Mapper: o.Mapper, Optional: facts.Kinds(), Versions: facts.Versions(), Transform: feed.Strip,
	}); err != nil {
		return nil, err
	}
	s.sender = bind.New(bind.Options{Client: o.Client, Held: o.Held, Deliver: s.deliver, Parallel: o.Parallel})
	s.dispatcher = dispatcher{
		leader: s.leader, objects: s.objects, sender: s.sender, log: o.Log, causes: map[string]string{},
		limiter: flowcontrol.NewTokenBucketRateLimiter(o.EvictionRate, o.EvictionBurst),
	}
	s.barrier = barrier{client: o.Client, log: o.Log, wake: s.wake}
	s.reporter = report.New(report.Options{Client: o.Client, Held: o.Held})
	s.metrics = metrics.New(metrics.Sources{Pending: func() metrics.Pending { return pending(s.leader.Follower()) }, Reports: s.reporter.Waiting})
	s.dryRun = dryRun{leader: s.leader, objects: s.objects, metrics: s.metrics, log: o.Log, hold: o.Hold}
	s.health.turned.Store(time.Now().UnixNano())
	return s, nil
}

// readersEngine returns an engine for readers in other goroutines. It does not have the filters
// of Kubernetes, which read the Store: fair shares do not depend on them.
func (s *Scheduler) readersEngine() (*engine.Engine, error) {
	profiles := slices.Clone(s.options.Profiles)
	for i, p := range profiles {
		profiles[i].Plugins = slices.DeleteFunc(slices.Clone(p.Plugins), func(e engine.PluginConfig) bool { return e.Name == intree.Name })
	}
	return engine.NewProfiles(s.options.Registry, profiles)
}

// Health returns what probes read.
func (s *Scheduler) Health() *Health { return &s.health }

// Metrics returns the metrics.
func (s *Scheduler) Metrics() *metrics.Metrics { return s.metrics }

// Run runs the loop until the context ends. It returns an error if the loop cannot go on.
func (s *Scheduler) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var statuses sync.WaitGroup
	if !s.options.DryRun {
		statuses.Go(func() { s.writeQueues(ctx) })
	}
	defer func() {
		stop()
		s.sender.Stop() // first, so that nothing is sent any more
		s.barrier.reset()
		statuses.Wait()
		s.watch.Stop()
		s.reporter.Stop()
	}()
	for ctx.Err() == nil {
		// 1. Facts.
		ready := s.watch.Synced() // before Take, which then returns the last of the initial objects
		if err := s.observe(); err != nil {
			return err
		}
		// 2. Decisions.
		if ready {
			if err := s.lead(); err != nil {
				return err
			}
		}
		// 3. Requests.
		s.dispatcher.dispatch()
		s.settlePromises()
		s.endTurn(ready)
		// 4. Whatever comes next.
		s.wait(ctx, ready)
	}
	return nil
}

// lead decides, if this process is the leader and knows what the earlier one has written.
func (s *Scheduler) lead() error {
	if !s.options.Held() {
		s.barrier.reset()
		s.health.noteDue(false, time.Now())
		return nil
	}
	if s.isDue(time.Now()) {
		s.health.noteDue(true, time.Now())
	}
	read, passed := s.barrier.pass(time.Now())
	if !passed {
		return nil
	}
	for _, e := range read {
		if !e.Deleted && !s.objects.isOld(e) && !s.objects.isKnown(e.Object) {
			s.barrier.expect(e)
		}
		if err := s.take(e); err != nil {
			return err
		}
	}
	s.recover()
	return s.decide()
}

// observe applies what has arrived since the last call.
func (s *Scheduler) observe() error {
	s.mu.Lock()
	results := s.results
	s.results = nil
	s.mu.Unlock()
	for i := range results {
		if err := s.finish(&results[i]); err != nil {
			return err
		}
	}
	if s.options.DryRun {
		if err := s.apply(s.dryRun.due(time.Now())); err != nil {
			return err
		}
	}
	for _, e := range s.watch.Take() {
		s.barrier.confirm(e)
		if err := s.take(e); err != nil {
			return err
		}
	}
	for _, uid := range s.waiters.due(time.Now()) {
		if pod := s.objects.pods[uid]; pod != nil {
			s.tellWaiting(pod)
		}
	}
	return nil
}

// take applies what the event makes true.
func (s *Scheduler) take(e watch.Event) error {
	if s.objects.isOld(e) {
		return nil
	}
	if s.options.DryRun {
		s.dryRun.compare(e)
	}
	facts, notes := s.objects.read(e)
	for _, n := range notes {
		s.note(&n)
	}
	if err := s.apply(facts); err != nil {
		return err
	}
	s.objects.keep(e)
	s.changed = s.changed || readByFilters(e.Object)
	if pod, isPod := e.Object.(*corev1.Pod); isPod && !e.Deleted {
		if reason, _ := waitsFor(s, pod); reason != "" {
			s.waiters.add(pod.UID, time.Now())
		}
		s.noteArrival(pod)
	}
	return nil
}

// apply reports the facts to the State. A fact that the State rejects is malformed, and is
// logged: the other facts count nevertheless.
func (s *Scheduler) apply(facts []cluster.Change) error {
	for _, f := range facts {
		s.changed = true
		s.objects.follow(f)
		if err := s.leader.Apply(f); err != nil {
			s.metrics.RejectedFact()
			s.options.Log.Error("A fact was rejected.", "kind", f.Kind(), "error", err)
		}
	}
	return nil
}

// isDue reports whether there is something to decide.
func (s *Scheduler) isDue(now time.Time) bool {
	return s.changed || s.dispatcher.changed || s.nextWake > 0 && s.nextWake <= now.UnixNano()
}

// decide runs a session if there is something to decide.
func (s *Scheduler) decide() error {
	now := time.Now()
	if !s.isDue(now) {
		return nil
	}
	s.changed, s.dispatcher.changed = false, false
	s.tellDoubleBookings()
	session := s.options.Tracer.Begin(now)
	out, err := s.sessions.run(engine.Options{Now: now.UnixNano(), Hold: int64(s.options.Hold), Timings: session.Timings()})
	session.End(&out, err)
	s.health.noteSession(err, time.Now())
	s.measure(&out, time.Since(now), err)
	s.nextWake = out.NextWake
	if err != nil {
		// The decisions before the error are valid. A plugin that fails again and again makes
		// the scheduler unhealthy, but does not keep it from deciding what it can.
		s.options.Log.Error("A session ended with an error.", "error", err)
	}
	s.accept(&out)
	s.report(&out)
	s.tellArrived()
	return nil
}

// wait waits until there is something to do.
func (s *Scheduler) wait(ctx context.Context, ready bool) {
	var timer <-chan time.Time
	pause := time.Duration(-1)
	switch {
	case !ready || !s.options.Held():
		pause = 100 * time.Millisecond // neither is signalled
	case s.changed || s.dispatcher.changed || len(s.dryRun.refused) > 0:
		pause = 0 // dispatch has found that a decision does not hold any more
	case len(s.dispatcher.toEvict) > 0:
		pause = 50 * time.Millisecond // until the limit of the rate allows the next
	case s.nextWake > 0:
		pause = max(0, time.Until(time.Unix(0, s.nextWake)))
	}
	if pause >= 0 {
		t := time.NewTimer(min(pause, idle))
		defer t.Stop()
		timer = t.C
	} else {
		t := time.NewTimer(idle)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-ctx.Done():
	case <-s.watch.Arrived():
	case <-s.returned:
	case answer := <-s.questions:
		answer()
	case <-timer:
	}
}

// idle is the longest time that the loop waits, so that probes see that it is alive.
const idle = time.Second
