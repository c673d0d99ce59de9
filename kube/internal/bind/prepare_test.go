package bind_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/kube/internal/bind"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// newPreparer returns a Sender that prepares at most two pods at the same time, and the requests
// that it sends.
func newPreparer(t *testing.T, held func() bool, results chan bind.Result) (*bind.Sender, *script) {
	t.Helper()
	s := &script{}
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://api", Transport: s, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return bind.New(bind.Options{Client: client, Held: held, Deliver: func(r bind.Result) { results <- r }, Preparations: 2}), s
}

// TestPrepare checks that a preparation is reported, and that the binding is not sent: the caller
// compares it with the State again.
func TestPrepare(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bind.Outcome
		fact cluster.Change
	}{
		"prepared": {nil, bind.Prepared, nil},
		"failed":   {errors.New("no volume"), bind.Failed, cluster.BindFailed{Task: task, UID: "u1", Attempt: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			results := make(chan bind.Result, 1)
			s, requests := newPreparer(t, always, results)
			if !s.Prepare(bind.Binding{Pod: thePod, Attempt: 3, Node: "n"}, func(context.Context) error { return tc.err }) {
				t.Fatal("the preparation was not started")
			}
			r := <-results
			s.Stop()
			if !r.Prepares || r.Outcome != tc.want || r.Fact != tc.fact || (r.Reason == "") != (tc.err == nil) {
				t.Errorf("result %+v", r)
			}
			if len(requests.asked) > 0 {
				t.Errorf("%q were sent", requests.asked)
			}
		})
	}
}

// TestPrepareLease checks that the context of a preparation that is running ends when the lease is
// lost, and that it has ended already if the lease is not held at the start.
func TestPrepareLease(t *testing.T) {
	results := make(chan bind.Result, 1)
	var lost atomic.Bool
	s, _ := newPreparer(t, func() bool { return !lost.Load() }, results)
	defer s.Stop()
	started := make(chan struct{}, 1)
	wait := func(ctx context.Context) error {
		started <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	for range 2 {
		if !s.Prepare(bind.Binding{Pod: thePod, Attempt: 3, Node: "n"}, wait) {
			t.Fatal("the preparation was not started")
		}
		<-started
		lost.Store(true)
		if r := <-results; r.Outcome != bind.NotSent || r.Fact == nil {
			t.Errorf("outcome %v, fact %v", r.Outcome, r.Fact)
		}
	}
}

// TestPrepareBound checks that no more preparations and releases are running than allowed, that
// they take no slot of a request, that one more can be started when a result is delivered, and
// that Stop ends them.
func TestPrepareBound(t *testing.T) {
	results := make(chan bind.Result, 4)
	s, _ := newPreparer(t, always, results)
	next := make(chan struct{})
	wait := func(ctx context.Context) error {
		select {
		case <-next:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	b := bind.Binding{Pod: thePod, Attempt: 3, Node: "n"}
	if !s.Prepare(b, wait) || !s.Prepare(b, wait) || !s.Free() {
		t.Fatal("two preparations were not started, or take slots of requests")
	}
	if s.MayPrepare() || s.Prepare(b, wait) || s.Release(func(context.Context) {}) {
		t.Error("a third one was started")
	}
	next <- struct{}{}
	outcomes := []bind.Outcome{(<-results).Outcome}
	released := make(chan struct{})
	if !s.MayPrepare() || !s.Release(func(context.Context) { close(released) }) {
		t.Error("none can be started after a result")
	}
	<-released
	s.Stop()
	outcomes = append(outcomes, (<-results).Outcome)
	if want := []bind.Outcome{bind.Prepared, bind.NotSent}; !slices.Equal(outcomes, want) {
		t.Errorf("outcomes %v, want %v", outcomes, want)
	}
}
