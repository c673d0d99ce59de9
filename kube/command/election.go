package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/berth-project/berth/kube/internal/lease"
	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

// electionFlags are the flags by which one of several processes of a program leads.
type electionFlags struct {
	leaderElect               bool
	leaseNamespace, leaseName string
	leaseDuration             time.Duration
	renewDeadline             time.Duration
	retryPeriod               time.Duration
}

// add adds the flags. act is what only the leader does.
func (f *electionFlags) add(set *pflag.FlagSet, act, name string) {
	set.BoolVar(&f.leaderElect, "leader-elect", true, act+" only while this process holds the lease")
	set.StringVar(&f.leaseNamespace, "leader-elect-namespace", "kube-system", "the namespace of the lease")
	set.StringVar(&f.leaseName, "leader-elect-name", name, "the name of the lease")
	set.DurationVar(&f.leaseDuration, "leader-elect-lease-duration", 15*time.Second, "how long other processes wait before they take a lease that is not renewed")
	set.DurationVar(&f.renewDeadline, "leader-elect-renew-deadline", 10*time.Second, "how long the leader may act after its last renewal")
	set.DurationVar(&f.retryPeriod, "leader-elect-retry-period", 2*time.Second, "the time between two renewals")
}

// election is the lease of a process; nil if the process leads without one.
type election struct{ lease *lease.Lease }

// election returns the lease that the flags describe.
func (f *electionFlags) election(client kubernetes.Interface) (election, error) {
	if !f.leaderElect {
		return election{}, nil
	}
	host, err := os.Hostname()
	return election{lease.New(lease.Options{
		Client: client, Namespace: f.leaseNamespace, Name: f.leaseName, Identity: fmt.Sprintf("%s_%d_%d", host, os.Getpid(), time.Now().UnixNano()),
		Duration: f.leaseDuration, RenewDeadline: f.renewDeadline, RetryPeriod: f.retryPeriod,
	})}, err
}

// held reports whether this process leads.
func (e election) held() bool { return e.lease == nil || e.lease.Held() }

// left returns how long this process may act.
func (e election) left() time.Duration {
	if e.lease == nil {
		return lease.Forever
	}
	return e.lease.Left()
}

// run runs the loop, and the election beside it, until the context or one of them ends. The lease is
// released only after the last request of the loop has ended.
func (e election) run(ctx context.Context, stop context.CancelCauseFunc, loop func(context.Context) error) error {
	ended := make(chan error, 1)
	electionContext, release := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		err := loop(ctx)
		stop(err)
		ended <- err
		release()
	}()
	if e.lease != nil {
		if err := e.lease.Run(electionContext, func(ctx context.Context) { <-ctx.Done() }); err != nil {
			stop(err)
			return errors.Join(err, <-ended)
		}
	}
	return <-ended
}

// newLog returns a log that writes lines of JSON. The libraries of Kubernetes write to it, too.
func newLog(stderr io.Writer, verbose bool) *slog.Logger {
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: level}))
	klog.SetSlogLogger(log)
	return log
}
