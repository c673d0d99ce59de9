package bind

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// bind sends the binding until the API server gives a definite answer.
func (s *Sender) bind(b *Binding) Result {
	out := Result{Pod: b.Pod}
	failed := func(o Outcome, reason string) Result {
		out.Outcome, out.Reason = o, reason
		out.Fact = cluster.BindFailed{Task: b.Task, UID: b.UID, Attempt: b.Attempt}
		return out
	}
	for try := 0; ; try++ {
		if !s.maySend() {
			if out.Sent == 0 {
				return failed(NotSent, notLeader)
			}
			out.Outcome, out.Reason = Unknown, notLeader
			return out
		}
		err := s.sendBinding(b)
		out.Sent++
		switch refused, pause := answerOf(err); {
		case err == nil:
			return out
		case refused:
			// A conflict may be the consequence of an earlier request whose answer was lost. Only
			// the pod itself tells.
			pod, gone, known := s.read(b.Pod)
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
			}
			return failed(Failed, err.Error())
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

func (s *Sender) sendBinding(b *Binding) error {
	ctx, cancel := s.request()
	defer cancel()
	return s.client.CoreV1().Pods(b.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: b.Name, UID: types.UID(b.UID), Annotations: b.Annotations},
		Target:     corev1.ObjectReference{Kind: "Node", Name: b.Node},
	}, metav1.CreateOptions{})
}

// read reads the pod until the API server answers. It reports gone if there is no pod with the
// UID any more, and known false if the Sender was stopped or lost the lease before an answer.
func (s *Sender) read(p Pod) (pod *corev1.Pod, gone, known bool) {
	for try := 0; s.maySend(); try++ {
		ctx, cancel := s.request()
		pod, err := s.client.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
		cancel()
		switch {
		case err == nil:
			return pod, string(pod.UID) != p.UID, true
		case apierrors.IsNotFound(err):
			return nil, true, true
		}
		_, pause := answerOf(err)
		if !s.pause(try, pause) {
			break
		}
	}
	return nil, false, false
}
