package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// gangWatch follows the pods of gangs through a watch, so that no moment is missed.
type gangWatch struct {
	mu      sync.Mutex
	bound   map[string]map[string]bool // by gang: the pods that are bound
	partial map[string]time.Time       // since when a gang is bound in part
	longest time.Duration              // how long a gang was bound in part
	peaks   map[string]int             // by gang: how many pods were bound at most
	min     int
	done    chan struct{}
	stop    context.CancelFunc
}

// watchGangs starts to follow the gangs, which all have the same minimum.
func (w *world) watchGangs(min int) *gangWatch {
	w.Helper()
	ctx, stop := context.WithCancel(w.ctx)
	g := &gangWatch{bound: map[string]map[string]bool{}, partial: map[string]time.Time{}, peaks: map[string]int{}, min: min, done: make(chan struct{}), stop: stop}
	watcher, err := w.client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	go func() {
		defer close(g.done)
		for e := range watcher.ResultChan() {
			if p, isPod := e.Object.(*corev1.Pod); isPod {
				g.see(p, e.Type == apiwatch.Deleted)
			}
		}
	}()
	w.Cleanup(func() { stop(); <-g.done })
	return g
}

func (g *gangWatch) see(p *corev1.Pod, deleted bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	gang := gangOf(p)
	if gang == "" {
		return
	}
	if g.bound[gang] == nil {
		g.bound[gang] = map[string]bool{}
	}
	if p.Spec.NodeName != "" && !deleted {
		g.bound[gang][p.Name] = true
	} else {
		delete(g.bound[gang], p.Name)
	}
	n := len(g.bound[gang])
	g.peaks[gang] = max(g.peaks[gang], n)
	since, was := g.partial[gang]
	switch is := n > 0 && n < g.min; {
	case is && !was:
		g.partial[gang] = time.Now()
	case !is && was:
		g.longest = max(g.longest, time.Since(since))
		delete(g.partial, gang)
	}
}

// gangOf returns the name of the pod's gang, which has labels of Berth or belongs to a
// LeaderWorkerSet or a Job; "" if there is none.
func gangOf(p *corev1.Pod) string {
	if set := p.Labels["leaderworkerset.sigs.k8s.io/name"]; set != "" {
		return set + "/" + p.Labels["leaderworkerset.sigs.k8s.io/group-index"]
	}
	if job := p.Labels["batch.kubernetes.io/job-name"]; job != "" {
		return job
	}
	return p.Labels["berth.dev/group-name"]
}

// most returns how many pods of the gang were bound at most at the same time.
func (g *gangWatch) most(gang string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.peaks[gang]
}

// check returns which gang is bound in part now; "" if none is.
func (g *gangWatch) check() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	for gang := range g.partial {
		return fmt.Sprintf("gang %s has %d of %d pods", gang, len(g.bound[gang]), g.min)
	}
	return ""
}

// waitForFirst waits until a pod of the gang is bound.
func (g *gangWatch) waitForFirst(w *world, gang string) {
	w.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		g.mu.Lock()
		n := len(g.bound[gang])
		g.mu.Unlock()
		if n > 0 {
			return
		}
	}
	w.Fatalf("no pod of gang %s was bound", gang)
}

func (w *world) createGang(name string, pods, min int, gpus int64, edit ...func(*corev1.Pod)) {
	for i := range pods {
		w.create(pod(fmt.Sprintf("%s-%d", name, i), gpus, append(edit, inGang(name, min))...))
	}
}

// TestGangs places gangs as a whole or not at all.
func TestGangs(t *testing.T) {
	w := newWorld(t)
	w.addNodes(4)
	g := w.watchGangs(4)
	w.scheduler()
	w.createGang("a", 4, 4, 4) // 16 of 32 GPUs
	w.createGang("b", 4, 4, 5) // does not fit beside a: 3 GPUs of each node are free in part
	w.createGang("c", 3, 4, 0) // too few pods
	w.eventually(func() string { return w.allBound("a-") })
	w.eventually(func() string {
		for name, p := range w.pods() {
			if strings.HasPrefix(name, "b-") && !strings.HasPrefix(conditionText(p), "False Unschedulable") {
				return name + ": " + conditionText(p)
			}
		}
		return ""
	})
	for name, p := range w.pods() {
		if !strings.HasPrefix(name, "a-") && p.Spec.NodeName != "" {
			t.Errorf("pod %s is on %s", name, p.Spec.NodeName)
		}
	}
	w.eventually(func() string {
		if text := conditionText(w.pods()["c-0"]); !strings.HasPrefix(text, "False WaitingForGang: ") || !strings.Contains(text, "has 4 pods") {
			return "pod c-0: " + text
		}
		return ""
	})
	w.create(pod("c-3", 0, inGang("c", 4)))
	w.eventually(func() string { return w.allBound("c-") })
	for i := range 4 {
		if err := w.client.CoreV1().Pods(namespace).Delete(w.ctx, fmt.Sprintf("a-%d", i), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
			t.Fatal(err)
		}
	}
	w.eventually(func() string { return w.allBound("b-") })
	w.eventually(g.check)
	w.checkRoom()
}

// TestKilled kills the scheduler at random moments while it binds gangs. At rest, every gang is
// bound as a whole, and no device is held twice.
func TestKilled(t *testing.T) {
	w := newWorld(t)
	w.addNodes(8)
	const size = 4
	g := w.watchGangs(size)
	flags := []string{"--leader-elect-lease-duration", "2s", "--leader-elect-renew-deadline", "1500ms", "--leader-elect-retry-period", "200ms"}
	torn := 0
	random := rand.New(rand.NewPCG(1, 2))
	for i := range *kills {
		p := w.scheduler(flags...)
		name := fmt.Sprintf("g%d", i)
		w.createGang(name, size, size, 1+int64(random.IntN(2)))
		// Half of the kills are while the gang is being bound, and half at any time.
		if i%2 == 0 {
			g.waitForFirst(w, name)
			time.Sleep(time.Duration(random.IntN(5)) * time.Millisecond)
		} else {
			time.Sleep(time.Duration(random.IntN(2500)) * time.Millisecond)
		}
		p.kill()
		if g.check() != "" {
			torn++
		}
		if i >= 6 { // room for further gangs
			for name := range w.pods() {
				if strings.HasPrefix(name, fmt.Sprintf("g%d-", i-6)) {
					_ = w.client.CoreV1().Pods(namespace).Delete(w.ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
				}
			}
		}
	}
	w.scheduler(flags...)
	w.eventually(func() string {
		if text := g.check(); text != "" {
			return text
		}
		return w.allBound("g")
	})
	w.checkRoom()
	t.Logf("%d kills, %d of them with a gang that was bound in part; a gang was bound in part for at most %s", *kills, torn, g.longest)
}

// TestLateMember creates a pod of a gang that is pending already. It is told why it is not placed
// as the others were, although the gang is refused for the same reason as before. The time of the
// transition does not change with the reason.
func TestLateMember(t *testing.T) {
	w := newWorld(t)
	w.addNodes(1)
	w.newInProcess(w.config(), always)
	transition := func(name string) (at metav1.Time) {
		for _, c := range w.pods()[name].Status.Conditions {
			if c.Type == corev1.PodScheduled {
				at = c.LastTransitionTime
			}
		}
		return at
	}
	says := func(name, want string) {
		t.Helper()
		w.eventually(func() string {
			if text := conditionText(w.pods()[name]); !strings.HasPrefix(text, want) {
				return fmt.Sprintf("pod %s: %s", name, text)
			}
			return ""
		})
	}
	w.create(pod("a", 9, inGang("large", 2)))
	says("a", "False WaitingForGang")
	began := transition("a")
	time.Sleep(1100 * time.Millisecond) // times are in seconds
	w.create(pod("b", 9, inGang("large", 2)))
	says("a", "False Unschedulable")
	says("b", "False Unschedulable")
	if now := transition("a"); !now.Equal(&began) {
		t.Errorf("the condition of pod a changed at %s, and again at %s", began, now)
	}
	w.create(pod("c", 9, inGang("large", 2)))
	says("c", "False Unschedulable")
}
