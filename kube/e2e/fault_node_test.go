package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-project/berth/kube/command"
	"github.com/berth-project/berth/kube/internal/controlplane"
	"github.com/berth-project/berth/kube/internal/scheduler"
	"github.com/berth-project/berth/plugins/standard"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNodeDeleted deletes a node while a gang is bound to it, one pod at a time. The pods that
// are bound to the node are removed and replaced, as controllers do. No binding to the node is
// sent after the scheduler has seen the deletion.
func TestNodeDeleted(t *testing.T) {
	w := newWorld(t)
	p := w.newProxy(*faultSeed)
	s := w.newInProcess(p.config(), always, func(o *scheduler.Options) { o.Parallel = 1 })
	const size = 4
	g := w.watchGangs(size)
	for round := range *faultRounds {
		doomed := fmt.Sprintf("first-%d", round)
		w.addNamed(doomed) // the only node with room
		var once sync.Once
		p.before(func(r *http.Request) int {
			if strings.HasSuffix(r.URL.Path, "/binding") {
				once.Do(func() {
					// The first binding is under way until the scheduler has seen the deletion.
					if err := w.client.CoreV1().Nodes().Delete(w.ctx, doomed, metav1.DeleteOptions{}); err != nil {
						t.Error(err)
					}
					time.Sleep(500 * time.Millisecond)
				})
			}
			return 0
		})
		name := fmt.Sprintf("r%d", round)
		w.createGang(name, size, size, 2)
		w.eventually(func() string {
			if len(w.boundTo(doomed)) == 0 {
				return "no pod was bound to the node"
			}
			return ""
		})
		time.Sleep(time.Second)
		lost := w.boundTo(doomed)
		if len(lost) != 1 {
			t.Errorf("%d pods were bound to a node that does not exist, want 1", len(lost))
		}
		w.addNamed(fmt.Sprintf("second-%d", round))
		for _, victim := range lost {
			if err := w.client.CoreV1().Pods(namespace).Delete(w.ctx, victim, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
				t.Fatal(err)
			}
			w.create(pod(victim, 2, inGang(name, size)))
		}
		w.eventually(func() string {
			if text := g.check(); text != "" {
				return text
			}
			return w.allBound("")
		})
		w.checkRoom()
		if left := w.boundTo(doomed); len(left) > 0 {
			t.Errorf("pods %q are bound to a node that does not exist", left)
		}
		t.Logf("round %d: %d pods were bound to the node", round, len(lost))
	}
	w.sameAsFresh(s)
}

// boundTo returns the names of the pods that are bound to the node.
func (w *world) boundTo(node string) []string {
	w.Helper()
	var out []string
	for name, p := range w.pods() {
		if p.Spec.NodeName == node {
			out = append(out, name)
		}
	}
	return out
}

// stopKwok ends kwok, so that the test itself can act as the kubelets.
func (w *world) stopKwok() {
	w.Helper()
	if err := w.cp.Kill(controlplane.Kwok); err != nil {
		w.Fatal(err)
	}
}

// startPods sets the status of all pods that are bound and have not started, as kubelets do.
func (w *world) startPods() {
	w.Helper()
	for _, p := range w.pods() {
		if p.Spec.NodeName == "" || p.Status.StartTime != nil {
			continue
		}
		now := metav1.Now()
		p.Status.Phase, p.Status.StartTime = corev1.PodRunning, &now
		if _, err := w.client.CoreV1().Pods(namespace).UpdateStatus(w.ctx, p, metav1.UpdateOptions{}); err != nil {
			w.Fatal(err)
		}
	}
}

// TestRejected rejects pods as a kubelet does. The successor of a pod is placed on a node that
// did not reject one like it, and waits for the end of the pause if there is none. Nothing is
// bound more often than once.
func TestRejected(t *testing.T) {
	const pause = 5 * time.Second
	w := newWorld(t)
	w.addNodes(3)
	w.stopKwok()
	p := w.newProxy(*faultSeed)
	s := w.newInProcess(p.config(), always, func(o *scheduler.Options) { o.Feed.RejectionPause = int64(pause) })
	for i, reason := range []string{"OutOfcpu", "UnexpectedAdmissionError"} {
		rejected := map[string]time.Time{} // by node
		began := len(bindings(p))
		for try := range 5 {
			name := fmt.Sprintf("r%d-%d", i, try)
			w.create(pod(name, int64(1+i)))
			w.eventually(func() string { return w.allBound(name) })
			node := nodeOf(w.pods()[name])
			if at, was := rejected[node]; was && time.Since(at) < pause-time.Second {
				t.Errorf("pod %s is on %s, which rejected a pod like it %s ago", name, node, time.Since(at))
			}
			rejected[node] = time.Now()
			w.reject(name, reason)
			if try%2 == 0 { // some controllers keep pods that have failed, others do not
				if err := w.client.CoreV1().Pods(namespace).Delete(w.ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if n := len(bindings(p)) - began; n != 5 {
			t.Errorf("%s: %d bindings for 5 pods", reason, n)
		}
		t.Logf("%s: 5 pods, rejected last by node: %v", reason, rejected)
	}
	// A member of a gang: its successor completes the gang on another node.
	w.createGang("g", 3, 3, 4)
	w.eventually(func() string { return w.allBound("g-") })
	node := nodeOf(w.pods()["g-0"])
	w.reject("g-0", "OutOfnvidia.com/gpu")
	w.create(pod("g-3", 4, inGang("g", 3)))
	w.eventually(func() string { return w.allBound("g-3") })
	if now := nodeOf(w.pods()["g-3"]); now == node {
		t.Errorf("pod g-3 is on %s, which rejected pod g-0", now)
	}
	w.checkRoom()
	w.startPods()
	w.sameAsFresh(s)
}

// bindings returns the bindings that the proxy received.
func bindings(p *proxy) []sent {
	var out []sent
	for _, r := range p.requests() {
		if r.binds() {
			out = append(out, r)
		}
	}
	return out
}

// reject sets the status of the pod as a kubelet does that does not admit it.
func (w *world) reject(name, reason string) {
	w.Helper()
	p := w.pods()[name]
	now := metav1.Now()
	p.Status.Phase, p.Status.Reason, p.Status.Message, p.Status.StartTime = corev1.PodFailed, reason, "Pod was rejected: "+reason, &now
	if _, err := w.client.CoreV1().Pods(namespace).UpdateStatus(w.ctx, p, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// TestRefused refuses all bindings of a pod, as a webhook may do. The scheduler tries again less
// and less often, and binds the pod when it may.
func TestRefused(t *testing.T) {
	w := newWorld(t)
	w.addNodes(2)
	p := w.newProxy(*faultSeed)
	w.newInProcess(p.config(), always)
	p.before(func(r *http.Request) int {
		if strings.HasSuffix(r.URL.Path, "/refused/binding") {
			return http.StatusForbidden
		}
		return 0
	})
	w.create(pod("refused", 1), pod("other", 1))
	w.eventually(func() string { return w.allBound("other") })
	time.Sleep(4 * time.Second)
	if n := len(bindings(p)); n < 4 || n > 9 {
		t.Errorf("%d bindings were sent in 4 s, want about 7", n)
	}
	p.before(nil)
	w.eventually(func() string { return w.allBound("refused") })
}

// TestRefusedRoom refuses all bindings of a pod that would fill the node. While the pod is held
// back, a younger pod gets the room, and the condition and kubectl berth say why the pod is not
// bound.
func TestRefusedRoom(t *testing.T) {
	w := newWorld(t)
	w.addNodes(1)
	p := w.newProxy(*faultSeed)
	s := w.newInProcess(p.config(), always)
	p.before(func(r *http.Request) int {
		if strings.HasSuffix(r.URL.Path, "/refused/binding") {
			return http.StatusForbidden
		}
		return 0
	})
	w.create(pod("refused", 8))
	w.eventually(func() string {
		if text := conditionText(w.pods()["refused"]); !strings.HasPrefix(text, "False BindingRefused: a fault of the test") {
			return "pod refused: " + text
		}
		return ""
	})
	var notes strings.Builder
	if code := command.Kubectl(standard.Registry(), []string{"--kubeconfig", w.cp.Kubeconfig(), "why", "refused"}, strings.NewReader(""), io.Discard, &notes); code != 0 || !strings.Contains(notes.String(), "the binding was refused: a fault of the test") {
		t.Errorf("kubectl berth why ends with %d: %s", code, notes.String())
	}
	w.create(pod("younger", 8))
	w.eventually(func() string { return w.allBound("younger") })
	w.eventually(func() string {
		if text := conditionText(w.pods()["refused"]); !strings.HasPrefix(text, "False Unschedulable") {
			return "pod refused: " + text
		}
		return ""
	})
	w.sameAsFresh(s)
}

// TestStaleDeletion deletes a pod that is being bound while the watch of pods is stale. The
// scheduler learns from the refusal that the pod is gone, and does not try again.
func TestStaleDeletion(t *testing.T) {
	w := newWorld(t)
	w.addNodes(2)
	p := w.newProxy(*faultSeed)
	s := w.newInProcess(p.config(), always)
	w.create(pod("first", 1))
	w.eventually(func() string { return w.allBound("first") })
	began := len(bindings(p))
	var once sync.Once
	p.before(func(r *http.Request) int {
		if strings.HasSuffix(r.URL.Path, "/gone/binding") {
			once.Do(func() {
				p.set(rates{stale: 1})
				if err := w.client.CoreV1().Pods(namespace).Delete(w.ctx, "gone", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
					t.Error(err)
				}
			})
		}
		return 0
	})
	w.create(pod("gone", 1))
	time.Sleep(2 * time.Second)
	p.set(rates{})
	w.sameAsFresh(s)
	if n := len(bindings(p)) - began; n != 1 {
		t.Errorf("%d bindings were sent for a pod that is gone, want 1", n)
	}
}
