package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/berth-project/berth/kube/internal/controlplane"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// holder returns the identity of the process that holds the lease of the schedulers.
func (w *world) holder() string {
	l, err := w.client.CoordinationV1().Leases("kube-system").Get(w.ctx, "berth-scheduler", metav1.GetOptions{})
	if err != nil || l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

// TestPaused pauses the leader while it binds a gang, until another process has taken the lease
// and has bound the gang. The first one is then resumed: it sends nothing, and ends.
//
// A request may be paused after the lease was checked and before it is written to the connection,
// if several are sent at the same time: bindings with --parallel above 1, and reports about pods
// always. Such requests are counted, and must change nothing.
func TestPaused(t *testing.T) {
	w := newWorld(t)
	w.addNodes(4)
	g := w.watchGangs(gangSize)
	flags := []string{"--leader-elect-lease-duration", "2s", "--leader-elect-renew-deadline", "1500ms", "--leader-elect-retry-period", "200ms"}
	for round := range *faultRounds {
		first := w.newProxy(*faultSeed)
		parallel := 1 + 7*(round%2)
		a := w.scheduler(append(flags, "--kubeconfig", first.kubeconfig(), "--parallel", fmt.Sprint(parallel))...)
		w.eventually(func() string {
			if w.holder() == "" {
				return "no process holds the lease"
			}
			return ""
		})
		before := w.holder()
		b := w.scheduler(flags...)
		paused := make(chan struct{})
		var bindings atomic.Int32
		first.before(func(r *http.Request) int {
			if strings.HasSuffix(r.URL.Path, "/binding") && bindings.Add(1) == int32(1+round%gangSize) {
				_ = a.Process.Signal(syscall.SIGSTOP)
				close(paused)
			}
			return 0
		})
		for i := range 2 {
			w.createGang(fmt.Sprintf("r%d%c", round, 'a'+i), gangSize, gangSize, 1)
		}
		<-paused
		w.eventually(func() string {
			if h := w.holder(); h == "" || h == before {
				return "the second process does not hold the lease"
			}
			return w.allBound("")
		})
		second, at, decided := w.holder(), time.Now(), w.decided()
		_ = a.Process.Signal(syscall.SIGCONT)
		select {
		case <-a.ended:
		case <-time.After(patience):
			t.Fatal("the process that lost the lease does not end")
		}
		late := first.countLate(at, parallel)
		if d := cmp.Diff(decided, w.decided()); d != "" {
			t.Errorf("what schedulers wrote into pods before and after the process was resumed:\n%s", d)
		}
		if h := w.holder(); h != second {
			t.Errorf("the lease is held by %q, want %q", h, second)
		}
		w.eventually(g.check)
		w.checkRoom()
		t.Logf("round %d: paused at binding %d of at most %d at the same time; %d late requests; the process ended %s after it was resumed", round, 1+round%gangSize, parallel, late, time.Since(at).Round(time.Millisecond))
		b.stop()
		w.deleteAll()
	}
}

// countLate returns how many requests that change something were sent after the process was
// resumed. It fails the test if one of them cannot have been on its way when the process was
// paused.
func (p *proxy) countLate(resumed time.Time, parallel int) int {
	p.w.Helper()
	late := 0
	for _, r := range p.requests() {
		if !r.at.After(resumed) || !r.writes() {
			continue
		}
		if late++; r.binds() && parallel == 1 || !r.binds() && !r.reports() || r.at.Sub(resumed) > time.Second {
			p.w.Errorf("%s %s was sent %s after the process was resumed", r.method, r.path, r.at.Sub(resumed))
		}
	}
	return late
}

// TestLateRenewal loses the lease for a short time while a gang is bound, and the answers of
// bindings with it. When the lease is held again, the scheduler finds out what became of them.
func TestLateRenewal(t *testing.T) {
	w := newWorld(t)
	w.addNodes(4)
	g := w.watchGangs(gangSize)
	p := w.newProxy(*faultSeed)
	var lost atomic.Bool
	s := w.newInProcess(p.config(), func() bool { return !lost.Load() })
	for round := range *faultRounds {
		p.before(func(r *http.Request) int {
			if strings.HasSuffix(r.URL.Path, "/binding") {
				lost.Store(true)
				return http.StatusServiceUnavailable
			}
			return 0
		})
		w.createGang(fmt.Sprintf("r%d", round), gangSize, gangSize, 1)
		w.eventually(func() string {
			if !lost.Load() {
				return "no binding was sent"
			}
			return ""
		})
		time.Sleep(time.Second)
		p.before(nil)
		lost.Store(false)
		w.eventually(func() string { return w.allBound("") })
		w.eventually(g.check)
		w.checkRoom()
	}
	w.sameAsFresh(s)
}

// TestRestarts restarts the API server and etcd while gangs are bound.
func TestRestarts(t *testing.T) {
	w := newWorld(t)
	w.addNodes(8)
	p := w.newProxy(*faultSeed)
	s := w.newInProcess(p.config(), always)
	l := w.newWorkload(*faultSeed)
	for round := range *faultRounds {
		bound := make(chan struct{}, 1)
		p.before(func(r *http.Request) int {
			if strings.HasSuffix(r.URL.Path, "/binding") {
				select {
				case bound <- struct{}{}:
				default:
				}
			}
			return 0
		})
		for created := l.next; l.next < created+6; {
			l.step()
		}
		<-bound
		component := [...]controlplane.Component{controlplane.APIServer, controlplane.Etcd}[round%2]
		if round%4 >= 2 {
			if err := w.cp.Kill(component); err != nil {
				t.Fatal(err)
			}
		}
		w.Restart(component)
		l.atRest(w.watchGangs(gangSize))
	}
	w.sameAsFresh(s)
	t.Logf("%d gangs and pods, %d restarts", l.next, *faultRounds)
}

// decided returns what schedulers have written into each pod: its node, its nominated node, its
// annotations and the condition PodScheduled.
func (w *world) decided() map[string]string {
	w.Helper()
	out := map[string]string{}
	for name, p := range w.pods() {
		out[name] = fmt.Sprint(p.Spec.NodeName, " ", p.Status.NominatedNodeName, " ", p.Annotations)
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled {
				out[name] += fmt.Sprint(" ", c.Status, " ", c.Reason)
			}
		}
	}
	return out
}

// nodeOf returns the node of the pod; "" if it has none.
func nodeOf(p *corev1.Pod) string {
	if p == nil {
		return ""
	}
	return p.Spec.NodeName
}
