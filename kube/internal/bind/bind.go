// Package bind carries out decisions: it binds pods to nodes and evicts pods, with several
// requests at the same time.
//
// A request whose answer is lost is neither taken for done nor for failed. It is sent again
// with the same UID until the API server gives a definite answer: a pod that the first request
// bound answers the second one with a conflict, and reading the pod then shows its node. A
// decision that was certainly not carried out is returned as a fact for the State (BindFailed,
// EvictionRefused). A decision that was carried out returns no fact: the watch confirms it.
//
// Every request is sent only while the process holds the lease of the leader, which is checked
// immediately before sending.
package bind

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/kube/internal/lease"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
)

// Pod names a pod, and the task that it is in the State.
type Pod struct {
	Namespace, Name string
	UID             string
	Task            cluster.TaskRef
}

// Binding is a pod that is to be bound to a node.
type Binding struct {
	Pod
	Attempt uint64 // of the Assign decision
	Node    string
	// Annotations are set on the pod together with its node.
	Annotations map[string]string
}

// Eviction is a pod that is to be evicted.
type Eviction struct {
	Pod
	Attempt uint64 // of the Evict decision
	// GraceSeconds is how long the pod may take to stop; nil means as long as its spec says.
	GraceSeconds *int64
}

// Outcome is what became of a request.
type Outcome uint8

// The outcomes of a request.
const (
	Done     Outcome = iota // it was carried out
	Failed                  // it was certainly not carried out
	Unknown                 // the Sender was stopped after it was sent: the next leader reads the pod
	NotSent                 // the lease was lost or the Sender was stopped before it was sent
	Prepared                // what must be done before the binding is done, and the binding was not sent
)

func (o Outcome) String() string {
	return [...]string{"Done", "Failed", "Unknown", "NotSent", "Prepared"}[o]
}

// Result is the outcome of one binding or eviction.
type Result struct {
	Pod    Pod
	Evicts bool // it is the result of an eviction
	// Prepares is set if it is the result of Prepare: the binding was not sent.
	Prepares bool
	Outcome  Outcome
	Fact     cluster.Change // what the State has to be told; nil if nothing
	Reason   string         // why it was not carried out, in the words of the API server
	// Current is the pod as it was read after the last answer; nil if it was not read. Gone is
	// set if there was no pod with the UID any more. Both may be newer than what the watch has
	// delivered.
	Current *corev1.Pod
	Gone    bool
	Sent    int // how many requests were sent
	Took    time.Duration
}

// Options of a Sender.
type Options struct {
	Client kubernetes.Interface
	// Held reports whether this process still holds the lease. It is called immediately
	// before each request.
	Held func() bool
	// Deliver is called with each result, from any goroutine. It must not block for long.
	Deliver  func(Result)
	Parallel int // how many requests may be under way at the same time; 0 means 32
	// Preparations is how many pods may be prepared at the same time; 0 means 256. Most of the
	// time of a preparation is spent waiting for controllers of Kubernetes.
	Preparations int
	Clock        clock.Clock // nil means the real clock
	// Timeout is how long one request may take; 0 means 10 s.
	Timeout time.Duration
}

// Sender sends bindings and evictions. Its methods are safe for concurrent use.
type Sender struct {
	client  kubernetes.Interface
	held    func() bool
	deliver func(Result)
	clock   clock.Clock
	timeout time.Duration
	slots   chan struct{}
	// preparing has a value for each preparation or release that is running.
	preparing chan struct{}
	ctx       context.Context
	stop      context.CancelFunc
	working   sync.WaitGroup
}

// New returns a Sender.
func New(o Options) *Sender {
	if o.Parallel == 0 {
		o.Parallel = 32
	}
	if o.Preparations == 0 {
		o.Preparations = 256
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	s := &Sender{client: o.Client, held: o.Held, deliver: o.Deliver, clock: o.Clock, timeout: o.Timeout, slots: make(chan struct{}, o.Parallel), preparing: make(chan struct{}, o.Preparations)}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// Bind starts to bind the pod. It reports false if as many requests as allowed are under way:
// the caller then keeps the binding, and checks it against the State again before the next try.
func (s *Sender) Bind(b Binding) bool {
	return s.start(func() Result { return s.bind(&b) })
}

// Evict starts to evict the pod. It reports false as Bind does.
func (s *Sender) Evict(e Eviction) bool {
	return s.start(func() Result { return s.evict(&e) })
}

// Stop makes the Sender send nothing any more, and waits until all results are delivered.
func (s *Sender) Stop() {
	s.stop()
	s.working.Wait()
}

// start runs the work in a goroutine, if a slot is free.
func (s *Sender) start(work func() Result) bool {
	select {
	case s.slots <- struct{}{}:
	default:
		return false
	}
	s.working.Add(1)
	go func() {
		defer s.working.Done()
		began := s.clock.Now()
		out := work()
		out.Took = s.clock.Since(began)
		<-s.slots // before the result, so that its receiver can use the slot
		s.deliver(out)
	}()
	return true
}

// maySend reports whether a request may be sent now.
func (s *Sender) maySend() bool { return s.ctx.Err() == nil && s.held() }

// post sends the request once, unless the lease is not held: then it reports false. The lease
// is checked after the wait for the limit of the client, which may be long, and after the
// request is encoded. The client itself does not send the request again, since it does not check
// the lease.
func (s *Sender) post(r *rest.Request, limit flowcontrol.RateLimiter) (bool, error) {
	if limit != nil && limit.Wait(s.ctx) != nil {
		return false, nil // the Sender is stopped
	}
	ctx, cancel := s.request()
	defer cancel()
	if !s.maySend() {
		return false, nil
	}
	err := r.Throttle(unlimited).MaxRetries(0).Do(ctx).Error()
	if errors.Is(err, lease.ErrNotHeld) {
		return false, nil // the lease was lost after the check above
	}
	return true, err
}

// unlimited is the limit of requests that have waited already.
var unlimited = flowcontrol.NewFakeAlwaysRateLimiter()

// request returns a context for one request.
func (s *Sender) request() (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.ctx, s.timeout)
}

// The time between two tries of a request doubles from the first to the last of these.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 5 * time.Second
)

// pause waits before the given try, or for as long as the API server requested. It reports false if
// the Sender is stopped meanwhile.
func (s *Sender) pause(try int, requested time.Duration) bool {
	wait := lastPause
	if try < 7 {
		wait = firstPause << try
	}
	<-s.slots // so that others can send meanwhile
	defer func() { s.slots <- struct{}{} }()
	select {
	case <-s.clock.After(max(wait, requested)):
		return true
	case <-s.ctx.Done():
		return false
	}
}

// Free reports whether a request may be started now.
func (s *Sender) Free() bool { return len(s.slots) < cap(s.slots) }

// isOnNode reports whether the pod is the one with the UID and is bound to the node.
func isOnNode(pod *corev1.Pod, uid, node string) bool {
	return string(pod.UID) == uid && pod.Spec.NodeName == node
}
