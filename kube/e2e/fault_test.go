package e2e

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/kube/command"
	"github.com/berth-project/berth/kube/internal/intree"
	"github.com/berth-project/berth/kube/internal/lease"
	"github.com/berth-project/berth/kube/internal/scheduler"
	"github.com/berth-project/berth/plugins/consolidate"
	"github.com/berth-project/berth/plugins/standard"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/events"
)

var (
	faultSeed   = flag.Uint64("fault-seed", 1, "the seed of the random faults and workloads")
	faultRounds = flag.Int("fault-rounds", 3, "how often the tests of faults come to rest")
)

// inProcess is a scheduler that runs in the process of the test.
type inProcess struct {
	*scheduler.Scheduler
	end func() // returns when Run has returned
}

// newInProcess starts a scheduler with the default profile. It is ended when the test ends.
func (w *world) newInProcess(config *rest.Config, held func() bool, edit ...func(*scheduler.Options)) *inProcess {
	w.Helper()
	file := w.NewLog()
	profile, err := standard.Merge(standard.Profile(), []standard.Override{{Name: intree.Name}, {Name: consolidate.Name, Disabled: true}}, false)
	if err != nil {
		w.Fatal(err)
	}
	eventsClient, err := kubernetes.NewForConfig(config)
	if err != nil {
		w.Fatal(err)
	}
	config = lease.Fence(config, func() time.Duration {
		if held() {
			return lease.Forever
		}
		return 0
	})
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		w.Fatal(err)
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		w.Fatal(err)
	}
	finder, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: eventsClient.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		w.Fatal(err)
	}
	o := scheduler.Options{
		Client: typed, Dynamic: untyped, Mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(finder)),
		Registry: standard.Registry(), Profiles: []engine.NamedProfile{{Plugins: profile}}, Held: held,
		Feed:   feed.Options{SchedulerNames: []string{command.DefaultName}, RejectionPause: int64(time.Minute)},
		Events: broadcaster.NewRecorder(scheme.Scheme, command.DefaultName), Log: slog.New(slog.NewJSONHandler(file, nil)),
	}
	for _, e := range edit {
		e(&o)
	}
	s, err := scheduler.New(o)
	if err != nil {
		w.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	end := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.Error(err)
		}
		broadcaster.Shutdown()
		file.Close()
		if w.Failed() {
			w.LogEnd(file.Name())
		}
	})
	w.Cleanup(end)
	return &inProcess{s, end}
}

func always() bool { return true }
func never() bool  { return false }

// sameAsFresh waits until the State of the scheduler equals that of a scheduler that is started
// now, reads all objects without a proxy, and decides nothing. Digest says what is compared.
func (w *world) sameAsFresh(s *inProcess) {
	w.Helper()
	fresh := w.newInProcess(w.config(), never)
	defer fresh.end()
	w.eventually(func() string {
		if !fresh.Health().Synced() {
			return "the fresh scheduler has not read all objects"
		}
		want, err := fresh.Digest(w.ctx)
		if err != nil {
			return err.Error()
		}
		got, err := s.Digest(w.ctx)
		if err != nil {
			return err.Error()
		}
		if d := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); d != "" {
			return "State after a fresh list (-), and of the scheduler (+):\n" + d
		}
		return ""
	})
}

// workload creates and deletes gangs and single pods at random. They never request more than 40
// GPUs in pods of at most 2, so that on 8 nodes there is always room for all of them.
type workload struct {
	w      *world
	random *rand.Rand
	next   int
	alive  []string         // the names of gangs and single pods
	gpus   map[string]int64 // what each of them requests
}

const gangSize = 3

func (w *world) newWorkload(seed uint64) *workload {
	return &workload{w: w, random: rand.New(rand.NewPCG(seed, 2)), gpus: map[string]int64{}}
}

// step creates a gang or a pod, or deletes one.
func (l *workload) step() {
	total := int64(0)
	for _, n := range l.gpus {
		total += n
	}
	if len(l.alive) > 0 && (total > 34 || l.random.IntN(3) == 0) {
		i := l.random.IntN(len(l.alive))
		name := l.alive[i]
		l.alive = append(l.alive[:i], l.alive[i+1:]...)
		delete(l.gpus, name)
		l.delete(name)
		return
	}
	l.next++
	each := int64(l.random.IntN(3))
	if l.random.IntN(2) == 0 {
		name := fmt.Sprintf("g%04d", l.next)
		l.w.createGang(name, gangSize, gangSize, each)
		l.alive, l.gpus[name] = append(l.alive, name), gangSize*each
	} else {
		name := fmt.Sprintf("s%04d", l.next)
		l.w.create(pod(name+"-0", each))
		l.alive, l.gpus[name] = append(l.alive, name), each
	}
}

// delete deletes the pods of the gang or the single pod, half of the times without a grace
// period.
func (l *workload) delete(name string) {
	var o metav1.DeleteOptions
	if l.random.IntN(2) == 0 {
		o.GracePeriodSeconds = new(int64)
	}
	for i := range gangSize {
		if i == 0 || name[0] == 'g' {
			if err := l.w.client.CoreV1().Pods(namespace).Delete(l.w.ctx, fmt.Sprintf("%s-%d", name, i), o); err != nil {
				l.w.Fatal(err)
			}
		}
	}
}

// atRest waits until all pods of the workload are bound and no others are left, and checks that
// no device is held twice.
func (l *workload) atRest(g *gangWatch) {
	l.w.Helper()
	l.w.eventually(func() string {
		want := 0
		for _, name := range l.alive {
			if want++; name[0] == 'g' {
				want += gangSize - 1
			}
		}
		if got := len(l.w.pods()); got != want {
			return fmt.Sprintf("there are %d pods, want %d", got, want)
		}
		if text := g.check(); text != "" {
			return text
		}
		return l.w.allBound("")
	})
	l.w.checkRoom()
}

// TestFaults creates and deletes gangs and pods while requests of the scheduler are refused,
// not answered or delayed, and while its watches are stale and cut.
func TestFaults(t *testing.T) {
	w := newWorld(t)
	w.addNodes(8)
	g := w.watchGangs(gangSize)
	p := w.newProxy(*faultSeed)
	s := w.newInProcess(p.config(), always)
	l := w.newWorkload(*faultSeed)
	for range *faultRounds {
		p.set(rates{refuse: 0.1, hang: 0.05, lose: 0.1, late: 0.05, stale: 0.02, cut: 0.02})
		for range 20 {
			l.step()
			time.Sleep(time.Duration(l.random.IntN(300)) * time.Millisecond)
		}
		p.set(rates{})
		l.atRest(g)
	}
	w.sameAsFresh(s)
	t.Logf("%d gangs and pods, faults: %v; a gang was bound in part for at most %s", l.next, p.counts(), g.longest)
}
