package lease_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-project/berth/kube/internal/controlplane"
	"github.com/berth-project/berth/kube/internal/lease"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	duration = 2 * time.Second
	renewal  = 1500 * time.Millisecond
	retry    = 200 * time.Millisecond
	patience = time.Minute
)

// newLease returns a lease of the process with the identity. Requests pass through wrap.
func newLease(t *testing.T, config *rest.Config, identity string, wrap func(http.RoundTripper) http.RoundTripper) *lease.Lease {
	t.Helper()
	config = rest.CopyConfig(config)
	config.Wrap(wrap)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return lease.New(lease.Options{
		Client: client, Namespace: "kube-system", Name: "test", Identity: identity, Duration: duration, RenewDeadline: renewal, RetryPeriod: retry,
	})
}

// run runs the election until the context ends. The channel has the error of Run.
func run(ctx context.Context, l *lease.Lease) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx, func(ctx context.Context) { <-ctx.Done() }) }()
	return ended
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func waitUntil(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not within a minute: " + what)
		}
	}
}

// TestLost checks that Run returns an error when renewals do not arrive, that the lease is not
// held then, and that a process that lost its lease does not release it for the next holder.
func TestLost(t *testing.T) {
	cp := controlplane.StartForTest(t, controlplane.Options{})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var cut atomic.Bool
	none := func(r http.RoundTripper) http.RoundTripper { return r }
	second := newLease(t, cp.Config(), "second", none)
	first := newLease(t, cp.Config(), "first", func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			switch {
			case !cut.Load() || !strings.Contains(r.URL.Path, "/leases"):
			case r.Method == http.MethodPut && !second.Held(): // a renewal does not arrive
				<-r.Context().Done()
				return nil, r.Context().Err()
			case r.Method == http.MethodGet: // what is read before the release arrives late
				for !second.Held() && r.Context().Err() == nil {
					time.Sleep(10 * time.Millisecond)
				}
			}
			return next.RoundTrip(r)
		})
	})
	firstEnded := run(ctx, first)
	waitUntil(t, "the first process holds the lease", first.Held)
	secondEnded := run(ctx, second)
	cut.Store(true)
	select {
	case err := <-firstEnded:
		if err == nil || !strings.Contains(err.Error(), "was lost") {
			t.Errorf("Run returned %v after the lease was lost", err)
		}
	case <-time.After(patience):
		t.Fatal("Run did not return after the lease was lost")
	}
	if first.Held() {
		t.Error("the first process holds the lease that it lost")
	}
	if holder, err := second.Holder(ctx); err != nil || holder != "second" {
		t.Errorf("the holder is %q (%v), want the second process", holder, err)
	}
	stop()
	if err := <-secondEnded; err != nil {
		t.Errorf("Run returned %v after its context ended", err)
	}
	if holder, err := second.Holder(t.Context()); err != nil || holder != "" {
		t.Errorf("the holder is %q (%v) after the lease was released", holder, err)
	}
}
