package bind

import (
	"context"
	"time"

	"github.com/berth-project/berth/cluster"
)

// leaseCheck is the time between two checks of the lease while a pod is prepared.
const leaseCheck = 100 * time.Millisecond

// Prepare starts what must be done before the pod is bound, such as binding its volumes. That may
// take minutes, in which the decision may be overtaken: the pod is not bound afterwards. The
// outcome of the result is Prepared, and the caller then compares the decision with the State
// again before it calls Bind. If the outcome is another one, the pod must not be bound.
//
// The function is called once. Its context ends when the Sender is stopped or the lease is lost;
// if it has ended already, the function must do nothing. Prepare reports false, and does not
// call the function, if as many preparations as allowed are running.
func (s *Sender) Prepare(b Binding, prepare func(context.Context) error) bool {
	return s.startPreparing(func() *Result {
		began := s.clock.Now()
		out := Result{Pod: b.Pod, Prepares: true, Outcome: Prepared}
		ctx, end := s.whileHeld()
		defer end()
		if err := prepare(ctx); err != nil {
			out.Outcome, out.Reason = Failed, err.Error()
			if ctx.Err() != nil {
				out.Outcome, out.Reason = NotSent, notLeader
			}
			out.Fact = cluster.BindFailed{Task: b.Task, UID: b.UID, Attempt: b.Attempt}
		}
		out.Took = s.clock.Since(began)
		return &out
	})
}

// MayPrepare reports whether a preparation may be started now. It stays true until the caller
// starts one.
func (s *Sender) MayPrepare() bool { return len(s.preparing) < cap(s.preparing) }

// Release starts to undo what was prepared for a pod that is not bound. Its result is not
// delivered. It reports false as Prepare does.
func (s *Sender) Release(release func(context.Context)) bool {
	return s.startPreparing(func() *Result {
		ctx, end := s.whileHeld()
		defer end()
		release(ctx)
		return nil
	})
}

// startPreparing runs the work in a goroutine and delivers its result, unless as many are running
// as allowed.
func (s *Sender) startPreparing(work func() *Result) bool {
	select {
	case s.preparing <- struct{}{}:
	default:
		return false
	}
	s.working.Go(func() {
		out := work()
		<-s.preparing // before the result, so that its receiver can start another
		if out != nil {
			s.deliver(*out)
		}
	})
	return true
}

// whileHeld returns a context that ends when the lease is lost or the Sender is stopped.
func (s *Sender) whileHeld() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(s.ctx)
	if !s.held() {
		cancel()
		return ctx, cancel
	}
	s.working.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-s.clock.After(leaseCheck):
				if !s.held() {
					cancel()
				}
			}
		}
	})
	return ctx, cancel
}
