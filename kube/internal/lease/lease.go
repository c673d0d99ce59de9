// Package lease elects one of several processes as the leader, and tells the leader until
// when it may act.
//
// The leader may act until its local deadline: RenewDeadline after it began to send the last
// renewal that succeeded. RenewDeadline is shorter than the time after which another process
// takes the lease, so that no request is sent after that, even if this process was paused.
package lease

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Options of an election. The durations are those of package leaderelection of client-go.
type Options struct {
	Client          kubernetes.Interface
	Namespace, Name string // of the Lease object
	Identity        string
	Duration        time.Duration // after which another process takes the lease; 0 means 15 s
	RenewDeadline   time.Duration // 0 means 10 s
	RetryPeriod     time.Duration // 0 means 2 s
}

// Lease is a lease that this process holds or waits for.
type Lease struct {
	options  Options
	base     time.Time    // deadlines are measured from it by the monotonic clock
	deadline atomic.Int64 // in nanoseconds after base; 0: the lease is not held
	acquired atomic.Bool  // the lease was held at some time
}

// New returns a lease that is not held.
func New(o Options) *Lease {
	if o.Duration == 0 {
		o.Duration = 15 * time.Second
	}
	if o.RenewDeadline == 0 {
		o.RenewDeadline = 10 * time.Second
	}
	if o.RetryPeriod == 0 {
		o.RetryPeriod = 2 * time.Second
	}
	return &Lease{options: o, base: time.Now()}
}

// Held reports whether the local deadline has not passed. It may be called at any time, from
// any goroutine.
func (l *Lease) Held() bool { return l.Left() > 0 }

// Left returns how long it is until the local deadline; 0 or less if it has passed.
func (l *Lease) Left() time.Duration {
	return time.Duration(l.deadline.Load()) - time.Since(l.base)
}

// Run waits for the lease, calls lead and renews the lease. It returns when the context has
// ended, when lead has returned, or with an error when the lease is lost. The context of lead
// ends when the lease is lost. Run returns after lead has.
func (l *Lease) Run(ctx context.Context, lead func(context.Context)) error {
	inner, err := resourcelock.New(resourcelock.LeasesResourceLock, l.options.Namespace, l.options.Name,
		l.options.Client.CoreV1(), l.options.Client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: l.options.Identity})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          &fence{Interface: inner, lease: l},
		LeaseDuration: l.options.Duration, RenewDeadline: l.options.RenewDeadline, RetryPeriod: l.options.RetryPeriod,
		ReleaseOnCancel: true, Name: l.options.Name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				defer close(ended)
				lead(ctx)
				stop()
			},
			OnStoppedLeading: func() { l.deadline.Store(0) },
		},
	})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	lost := ctx.Err() == nil // otherwise the caller or lead ended it
	if l.acquired.Load() {   // lead was called
		<-ended
	}
	if lost {
		return fmt.Errorf("the lease %s/%s was lost", l.options.Namespace, l.options.Name)
	}
	return nil
}

// fence notes the local deadline with each renewal.
type fence struct {
	resourcelock.Interface
	lease  *Lease
	holder string // the holder that was read last
}

// Get reads the Lease object.
func (f *fence) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r, raw, err := f.Interface.Get(ctx)
	if err == nil {
		f.holder = r.HolderIdentity
	}
	return r, raw, err
}

// Create creates the Lease object.
func (f *fence) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return f.renewed(&r, func() error { return f.Interface.Create(ctx, r) })
}

// Update updates the Lease object.
func (f *fence) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return f.renewed(&r, func() error { return f.Interface.Update(ctx, r) })
}

func (f *fence) renewed(r *resourcelock.LeaderElectionRecord, send func() error) error {
	l := f.lease
	held := r.HolderIdentity == l.options.Identity
	if !held {
		// The lease is being released. LeaderElector reads the Lease object before it does, but
		// does not compare its holder: without this check, a process that was paused would
		// release the lease that another process has taken meanwhile.
		l.deadline.Store(0)
		if f.holder != l.options.Identity {
			return fmt.Errorf("the lease is held by %q", f.holder)
		}
	}
	until := int64(time.Since(l.base) + l.options.RenewDeadline)
	err := send()
	if err == nil && held {
		l.deadline.Store(until)
		l.acquired.Store(true)
	}
	return err
}

// Holder returns the identity of the process that holds the lease, and "" if none does.
func (l *Lease) Holder(ctx context.Context) (string, error) {
	o, err := l.options.Client.CoordinationV1().Leases(l.options.Namespace).Get(ctx, l.options.Name, metav1.GetOptions{})
	if err != nil || o.Spec.HolderIdentity == nil {
		return "", err
	}
	return *o.Spec.HolderIdentity, nil
}
