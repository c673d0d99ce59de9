package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
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

// BenchmarkDrain measures how fast a scheduler binds pods of one GPU that exist when it starts:
// from the first binding to the last, as a watch sees them. The schedulers are berth-scheduler,
// kube-scheduler, and one that has informers and binds each pod to the next node without a
// decision. All send at most 5,000 requests per second.
func BenchmarkDrain(b *testing.B) {
	for _, nodes := range []int{100, 1000, 5000} {
		b.Run("nodes="+strconv.Itoa(nodes), func(b *testing.B) {
			w := newWorld(b)
			w.addNodes(nodes)
			pods := min(2*nodes, 5000)
			for _, s := range []struct {
				name  string
				start func(*world) func()
			}{{"none", startNone}, {"berth", startBerth}, {"kube", startKube}} {
				b.Run("scheduler="+s.name, func(b *testing.B) {
					for range b.N {
						w.TB = b
						w.drain(b, s.name, pods, s.start)
					}
				})
			}
		})
	}
}

// drain creates the pods, starts the scheduler, waits until all are bound, and deletes them.
func (w *world) drain(b *testing.B, name string, count int, start func(*world) func()) {
	b.StopTimer()
	schedulerName := map[string]string{"berth": command.DefaultName, "kube": corev1.DefaultSchedulerName, "none": "none"}[name]
	w.createMany(count, func(i int) *corev1.Pod {
		return pod(fmt.Sprintf("p-%05d", i), 1, func(p *corev1.Pod) { p.Spec.SchedulerName = schedulerName })
	})
	began := time.Now()
	seen := w.countBound(count)
	stop := start(w)
	b.StartTimer()
	times := <-seen
	b.StopTimer()
	cpu := stop
	cpu()
	took := times.last.Sub(times.first)
	b.ReportMetric(float64(count)/took.Seconds(), "pods/s")
	b.ReportMetric(times.first.Sub(began).Seconds(), "s-to-first")
	w.checkRoom()
	w.deleteAll()
}

// createMany creates pods with several requests at the same time.
func (w *world) createMany(count int, build func(int) *corev1.Pod) {
	w.Helper()
	var wg sync.WaitGroup
	errs := make([]error, count)
	slots := make(chan struct{}, 16)
	for i := range count {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			_, errs[i] = w.client.CoreV1().Pods(namespace).Create(w.ctx, build(i), metav1.CreateOptions{})
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			w.Fatal(err)
		}
	}
}

func (w *world) deleteAll() {
	w.Helper()
	err := w.client.CoreV1().Pods(namespace).DeleteCollection(w.ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	w.eventually(func() string {
		if n := len(w.pods()); n > 0 {
			return fmt.Sprintf("%d pods are left", n)
		}
		return ""
	})
}

type boundTimes struct{ first, last time.Time }

// countBound returns a channel that has the times of the first and the last binding as soon as
// count pods are bound.
func (w *world) countBound(count int) <-chan boundTimes {
	out := make(chan boundTimes, 1)
	factory := informers.NewSharedInformerFactory(w.client, 0)
	stop := make(chan struct{})
	bound := map[string]bool{}
	var times boundTimes
	var once sync.Once
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, o any) {
			p := o.(*corev1.Pod)
			if p.Spec.NodeName == "" || bound[p.Name] {
				return
			}
			if bound[p.Name] = true; len(bound) == 1 {
				times.first = time.Now()
			}
			if len(bound) == count {
				times.last = time.Now()
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

func startBerth(w *world) func() {
	p := w.scheduler("--kube-api-qps", "5000", "--kube-api-burst", "5000")
	return p.kill
}

func startKube(w *world) func() {
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
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if w.Failed() {
			w.Log(log.String())
		}
	}
}

// startNone binds each pod to the next node that has room, and keeps no more than counts.
func startNone(w *world) func() {
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
	return func() {
		close(stop)
		factory.Shutdown()
		wg.Wait()
	}
}
