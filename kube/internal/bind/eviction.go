package bind

import (
	"time"

	"github.com/berth-project/berth/cluster"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// sparedFor is how long a task is not evicted again after a refusal, if the API server does not
// say when to try again.
const sparedFor = time.Minute

// evict sends the eviction until the API server gives a definite answer.
func (s *Sender) evict(e *Eviction) Result {
	out := Result{Pod: e.Pod, Evicts: true}
	refused := func(o Outcome, reason string, spared time.Duration) Result {
		out.Outcome, out.Reason = o, reason
		out.Fact = cluster.EvictionRefused{Task: e.Task, UID: e.UID, Attempt: e.Attempt, ProtectedUntil: s.clock.Now().Add(spared).UnixNano()}
		return out
	}
	for try := 0; ; try++ {
		sent, err := s.sendEviction(e)
		if !sent {
			if out.Sent == 0 {
				return refused(NotSent, notLeader, 0)
			}
			if !s.pause(try, 0) { // as in bind
				out.Outcome, out.Reason = Unknown, notLeader
				return out
			}
			continue
		}
		out.Sent++
		if err == nil || apierrors.IsNotFound(err) {
			return out
		}
		definite, pause := answerOf(err)
		if apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
			return refused(Failed, err.Error(), max(pause, firstPause))
		}
		if !apierrors.IsTooManyRequests(err) {
			pod, gone, known := s.read(e.Pod)
			out.Current, out.Gone = pod, gone
			switch {
			case !known:
				out.Outcome, out.Reason = Unknown, notLeader
				return out
			case gone || pod.DeletionTimestamp != nil:
				return out
			case definite && !apierrors.IsConflict(err), out.Sent >= maxTries:
				return refused(Failed, err.Error(), sparedFor)
			}
		}
		if out.Reason = err.Error(); !s.pause(try, pause) {
			out.Outcome = Unknown
			return out
		}
	}
}

// sendEviction sends the eviction. It reports false if it did not, because the lease was lost.
func (s *Sender) sendEviction(e *Eviction) (bool, error) {
	uid := types.UID(e.UID)
	return s.post(s.client.CoreV1().RESTClient().Post().Namespace(e.Namespace).Resource("pods").Name(e.Name).SubResource("eviction").Body(&policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, GracePeriodSeconds: e.GraceSeconds},
	}), s.client.CoreV1().RESTClient().GetRateLimiter())
}
