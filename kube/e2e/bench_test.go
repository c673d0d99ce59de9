package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-project/berth/kube/command"
	"github.com/berth-project/berth/kube/internal/controlplane"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// schedulers are what is compared: berth-scheduler, kube-scheduler, and one that has informers
// and binds each pod to the next node without a decision. All send at most 5,000 requests per
// second.
var schedulers = []struct {
	name  string // of the scheduler in results
	value string // of spec.schedulerName
	start func(*world) *subject
}{
	{"none", "none", startNone},
	{"berth", command.DefaultName, startBerth},
	{"kube", corev1.DefaultSchedulerName, startKube},
}

// subject is a scheduler that is measured.
type subject struct {
	pid  int // 0: it is a part of this process
	stop func()
}

// BenchmarkDrain measures how fast pods are bound that exist when the scheduler starts: from the
// first binding to the last, as a watch sees them.
func BenchmarkDrain(b *testing.B) { compareSchedulers(b, false) }

// BenchmarkLive measures how fast pods are bound that are created while the scheduler runs: from
// the first creation to the last binding. Creating pods takes a part of the machine.
func BenchmarkLive(b *testing.B) { compareSchedulers(b, true) }

func compareSchedulers(b *testing.B, live bool) {
	for _, nodes := range []int{100, 1000, 5000} {
		b.Run("nodes="+strconv.Itoa(nodes), func(b *testing.B) {
			w := newWorld(b)
			w.addNodes(nodes)
			for _, mix := range []bool{false, true} {
				for _, s := range schedulers {
					if mix && s.name == "kube" {
						continue // it has no gangs
					}
					b.Run(fmt.Sprintf("gangs=%t/scheduler=%s", mix, s.name), func(b *testing.B) {
						w.TB = b
						for range b.N {
							m := w.measure(min(5*nodes, 5000), live, mix, s.value, s.start)
							m.report(b)
						}
					})
				}
			}
		})
	}
}

// measurement is what was seen of one scheduler.
type measurement struct {
	pods       int
	took       time.Duration
	latencies  []time.Duration // from the creation of a pod to its binding, sorted; live only
	cpu        time.Duration   // of the scheduler
	memory     int64           // the resident memory of the scheduler at the end
	impossible time.Duration   // until an impossible pod was called unschedulable
	toFirst    time.Duration
}

func (m *measurement) report(b *testing.B) {
	b.ReportMetric(float64(m.pods)/m.took.Seconds(), "pods/s")
	b.ReportMetric(m.toFirst.Seconds(), "s-to-first")
	if n := len(m.latencies); n > 0 {
		b.ReportMetric(m.latencies[n/2].Seconds()*1000, "p50-ms")
		b.ReportMetric(m.latencies[n*99/100].Seconds()*1000, "p99-ms")
	}
	if m.cpu > 0 {
		b.ReportMetric(m.cpu.Seconds()*1e6/float64(m.pods), "cpu-us/pod")
		b.ReportMetric(float64(m.memory)/(1<<20), "rss-MiB")
		b.ReportMetric(m.impossible.Seconds()*1000, "impossible-ms")
	}
	b.ReportMetric(0, "ns/op")
}

// measure lets a scheduler bind the pods, and deletes them.
func (w *world) measure(count int, live, mix bool, scheduler string, start func(*world) *subject) *measurement {
	build := func(i int) *corev1.Pod {
		p := pod(fmt.Sprintf("p-%05d", i), 1, func(p *corev1.Pod) { p.Spec.SchedulerName = scheduler })
		if mix && i%2 == 0 { // half of the pods are in gangs of eight
			inGang(fmt.Sprintf("g-%05d", i/16), min(8, (count-i/16*16+1)/2))(p)
		}
		return p
	}
	m := &measurement{pods: count}
	began := time.Now()
	var created []time.Time
	if !live {
		created = w.createMany(count, build)
		began = time.Now()
	}
	seen := w.countBound(count)
	s := start(w)
	if live {
		time.Sleep(5 * time.Second) // until it is the leader and knows all nodes
		began = time.Now()
		created = w.createMany(count, build)
	}
	times := <-seen
	m.took, m.toFirst = times.last.Sub(times.first), times.first.Sub(began)
	if live {
		m.took = times.last.Sub(began)
		for name, at := range times.each {
			i, _ := strconv.Atoi(strings.TrimPrefix(name, "p-"))
			m.latencies = append(m.latencies, at.Sub(created[i]))
		}
		slices.Sort(m.latencies)
	}
	if s.pid > 0 {
		m.cpu, m.memory = usage(s.pid)
		w.create(pod("impossible", 9, func(p *corev1.Pod) { p.Spec.SchedulerName = scheduler }))
		asked := time.Now()
		w.eventually(func() string {
			if text := conditionText(w.pods()["impossible"]); !strings.HasPrefix(text, "False Unschedulable") {
				return "pod impossible: " + text
			}
			return ""
		})
		m.impossible = time.Since(asked)
	}
	s.stop()
	w.checkRoom()
	w.deleteAll()
	return m
}

// usage returns the time of the processor and the memory that a process has used.
func usage(pid int) (cpu time.Duration, memory int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	pages, _ := strconv.ParseInt(fields[21], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond, pages * int64(os.Getpagesize())
}

type boundTimes struct {
	first, last time.Time
	each        map[string]time.Time // by the name of the pod
}

// countBound returns a channel that has the times of the first and the last binding as soon as
// count pods are bound.
func (w *world) countBound(count int) <-chan boundTimes {
	out := make(chan boundTimes, 1)
	factory := informers.NewSharedInformerFactory(w.client, 0)
	stop := make(chan struct{})
	times := boundTimes{each: map[string]time.Time{}}
	var once sync.Once
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, o any) {
			p := o.(*corev1.Pod)
			if _, known := times.each[p.Name]; known || p.Spec.NodeName == "" {
				return
			}
			now := time.Now()
			if times.each[p.Name] = now; len(times.each) == 1 {
				times.first = now
			}
			if len(times.each) == count {
				times.last = now
				once.Do(func() { out <- times; close(stop) })
			}
		},
	})
	if err != nil {
		w.Fatal(err)
	}
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	return out
}

func startBerth(w *world) *subject {
	p := w.scheduler("--kube-api-qps", "5000", "--kube-api-burst", "5000")
	return &subject{p.Process.Pid, p.stop}
}

func startKube(w *world) *subject {
	bin, err := controlplane.Binaries()
	if err != nil {
		w.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(bin, string(controlplane.Scheduler)), "--kubeconfig", w.cp.Kubeconfig(), "--leader-elect=false",
		"--kube-api-qps=5000", "--kube-api-burst=5000", "--secure-port=0")
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	return &subject{cmd.Process.Pid, func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if w.Failed() {
			w.Log(log.String())
		}
	}}
}

// startNone binds each pod to the next node that has room, and keeps no more than counts.
func startNone(w *world) *subject {
	config := w.cp.Config()
	config.QPS, config.Burst = 5000, 5000
	config.AcceptContentTypes, config.ContentType = "application/vnd.kubernetes.protobuf,application/json", "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		w.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	stop := make(chan struct{})
	nodes, err := w.client.CoreV1().Nodes().List(w.ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		w.Fatal(err)
	}
	slots := make(chan struct{}, 32)
	var wg sync.WaitGroup
	next := 0
	_, err = factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) {
			p := o.(*corev1.Pod)
			if p.Spec.NodeName != "" || p.Spec.SchedulerName != "none" {
				return
			}
			node := nodes.Items[next/8%len(nodes.Items)].Name
			next++
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				_ = client.CoreV1().Pods(p.Namespace).Bind(w.ctx, &corev1.Binding{
					ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID},
					Target:     corev1.ObjectReference{Kind: "Node", Name: node},
				}, metav1.CreateOptions{})
			})
		},
	})
	if err != nil {
		w.Fatal(err)
	}
	factory.Core().V1().Nodes().Informer()
	factory.Start(stop)
	return &subject{0, func() {
		close(stop)
		factory.Shutdown()
		wg.Wait()
	}}
}
