package bind

import (
	"fmt"
	"time"

	"github.com/berth-project/berth/cluster"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// maxTries is how often a request is sent that the API server answers with an error that may be
// temporary, such as a conflict that nothing in the pod explains, or an error of its own because
// two disruption budgets select the pod.
const maxTries = 5

// bind sends the binding until the API server gives a definite answer.
func (s *Sender) bind(b *Binding) Result {
	out := Result{Pod: b.Pod}
	failed := func(o Outcome, reason string) Result {
		out.Outcome, out.Reason = o, reason
		out.Fact = cluster.BindFailed{Task: b.Task, UID: b.UID, Attempt: b.Attempt}
		return out
	}
	for try := 0; ; try++ {
		sent, err := s.sendBinding(b)
		if !sent {
			if out.Sent == 0 {
				return failed(NotSent, notLeader)
			}
			// The lease may be renewed late. The outcome is then found out; otherwise the process
			// ends, and the next leader reads the pod.
			if !s.pause(try, 0) {
				out.Outcome, out.Reason = Unknown, notLeader
				return out
			}
			continue
		}
		out.Sent++
		switch refused, pause := answerOf(err); {
		case err == nil:
			return out
		case refused:
			// A conflict may be the consequence of an earlier request whose answer was lost. Only
			// the pod itself tells.
			pod, gone, known := s.read(b.Pod)
			out.Current, out.Gone = pod, gone
			switch {
			case !known:
				out.Outcome, out.Reason = Unknown, notLeader
				return out
			case gone:
				return failed(Failed, "the pod is gone")
			case isOnNode(pod, b.UID, b.Node):
				return out
			case pod.Spec.NodeName != "":
				return failed(Failed, fmt.Sprintf("the pod is bound to node %s", pod.Spec.NodeName))
			case pod.DeletionTimestamp != nil, !apierrors.IsConflict(err), out.Sent >= maxTries:
				return failed(Failed, err.Error())
			}
			// Nothing in the pod explains the conflict. An earlier request may still be under way.
			if out.Reason = err.Error(); !s.pause(try, pause) {
				out.Outcome = Unknown
				return out
			}
		default:
			out.Reason = err.Error()
			if !s.pause(try, pause) {
				out.Outcome = Unknown
				return out
			}
		}
	}
}

// notLeader is the reason of a request that was not sent because the lease is lost.
const notLeader = "this process does not hold the lease of the leader"

// sendBinding sends the binding. It reports false if it did not, because the lease was lost.
func (s *Sender) sendBinding(b *Binding) (bool, error) {
	return s.post(s.client.CoreV1().RESTClient().Post().Namespace(b.Namespace).Resource("pods").Name(b.Name).SubResource("binding").Body(&corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: b.Name, UID: types.UID(b.UID), Annotations: b.Annotations},
		Target:     corev1.ObjectReference{Kind: "Node", Name: b.Node},
	}), s.client.CoreV1().RESTClient().GetRateLimiter())
}

// read reads the pod until the API server answers. It reports gone if there is no pod with the
// UID any more, and known false if the Sender was stopped before an answer. While the lease is
// not held, it waits.
func (s *Sender) read(p Pod) (pod *corev1.Pod, gone, known bool) {
	for try := 0; ; try++ {
		requested := time.Duration(0)
		if s.maySend() {
			ctx, cancel := s.request()
			pod, err := s.client.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
			cancel()
			switch {
			case err == nil && string(pod.UID) == p.UID:
				return pod, false, true
			case err == nil, apierrors.IsNotFound(err):
				return nil, true, true
			}
			_, requested = answerOf(err)
		}
		if !s.pause(try, requested) {
			return nil, false, false
		}
	}
}
