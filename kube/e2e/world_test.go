package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/berth-project/berth/kube/command"
	"github.com/berth-project/berth/kube/internal/controlplane"
	"github.com/berth-project/berth/kube/internal/testcluster"
	"github.com/berth-project/berth/plugins/standard"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestMain(m *testing.M) {
	testcluster.Main(m, func() int { return command.Main(standard.Registry(), os.Args[1:], os.Stderr) }, nil)
}

// The tests of this package use short names for what testcluster has.
const (
	gpu       = testcluster.GPU
	namespace = testcluster.Namespace
	patience  = testcluster.Patience
)

var (
	pod           = testcluster.Pod
	inGang        = testcluster.InGang
	inQueue       = testcluster.InQueue
	conditionText = testcluster.ConditionText
)

// world is a cluster, and the permissions of berth-scheduler.
type world struct {
	*testcluster.Cluster
	ctx    context.Context
	cp     *controlplane.ControlPlane
	client kubernetes.Interface
	access string // the kubeconfig of schedulers, which has their permissions only
}

func newWorld(t testing.TB, components ...controlplane.Component) *world {
	t.Helper()
	return newWorldWith(t, controlplane.Options{Components: components})
}

// newWorldWith starts a cluster, and installs the permissions of berth-scheduler.
func newWorldWith(t testing.TB, o controlplane.Options) *world {
	t.Helper()
	c := testcluster.NewRecorded(t, o, schedulerUser)
	w := &world{Cluster: c, ctx: c.Ctx, cp: c.CP, client: c.Client}
	w.install(permissions)
	w.access = w.ActAs(schedulerUser)
	return w
}

// config returns the configuration of schedulers that run in the process of the test.
func (w *world) config() *rest.Config { return w.ConfigAs(schedulerUser) }

func (w *world) install(file string)    { w.Helper(); w.Install(file) }
func (w *world) apply(manifests string) { w.Helper(); w.Apply(manifests) }
func (w *world) kubectl(input string, args ...string) string {
	w.Helper()
	return w.Kubectl(input, args...)
}
func (w *world) create(pods ...*corev1.Pod)         { w.Helper(); w.Create(pods...) }
func (w *world) pods() map[string]*corev1.Pod       { w.Helper(); return w.Pods() }
func (w *world) deleteAll()                         { w.Helper(); w.DeletePods() }
func (w *world) eventually(condition func() string) { w.Helper(); w.Eventually(condition) }
func (w *world) createMany(count int, build func(int) *corev1.Pod) []time.Time {
	w.Helper()
	return w.CreateMany(count, build)
}

// gpuNode returns a node with 8 GPUs.
func gpuNode(name string) controlplane.Node { return testcluster.Node(name, 8, testcluster.H100) }

// addNodes adds nodes with 8 GPUs.
func (w *world) addNodes(count int) {
	w.Helper()
	var nodes []controlplane.Node
	for i := range count {
		nodes = append(nodes, gpuNode(fmt.Sprintf("node-%04d", i)))
	}
	w.AddNodes(nodes...)
}

// addNamed adds a node with 8 GPUs.
func (w *world) addNamed(name string) {
	w.Helper()
	w.AddNodes(gpuNode(name))
}

// process is a scheduler that runs.
type process struct {
	*testcluster.Instance
	log   string
	ended chan struct{} // is closed when it has ended
}

// scheduler starts berth-scheduler with its own permissions. It is killed when the test ends.
func (w *world) scheduler(flags ...string) *process {
	w.Helper()
	p := w.Scheduler(w.access, flags...)
	return &process{p, p.Log, p.Ended}
}

func (p *process) kill() { p.Kill() }
func (p *process) stop() { p.Stop() }

// checkDone fails the test if a request of the scheduler was refused.
func (w *world) checkDone(p *process) {
	w.Helper()
	text, err := os.ReadFile(p.log)
	if err != nil {
		w.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "A request was not carried out.") {
			w.Errorf("%s", line)
		}
	}
}

func withPriority(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.PriorityClassName = name }
}

func preemptible(p *corev1.Pod) { p.Labels["berth.dev/preemptible"] = "true" }

// allBound returns which of the pods is not bound to a node; "" if all are.
func (w *world) allBound(prefix string) string {
	for name, p := range w.pods() {
		if strings.HasPrefix(name, prefix) && p.Spec.NodeName == "" {
			return fmt.Sprintf("pod %s is not bound: %s", name, conditionText(p))
		}
	}
	return ""
}

// checkRoom fails the test if the pods on a node hold more GPUs than it has.
func (w *world) checkRoom() {
	w.Helper()
	used := map[string]int64{}
	devices := map[string]string{}
	for _, p := range w.pods() {
		if p.Spec.NodeName == "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		q := p.Spec.Containers[0].Resources.Limits[gpu]
		used[p.Spec.NodeName] += q.Value()
		for _, d := range holdings(w, p) {
			if other := devices[d]; other != "" {
				w.Errorf("device %s is held by %s and %s", d, other, p.Name)
			}
			devices[d] = p.Name
		}
	}
	for node, n := range used {
		if n > 8 {
			w.Errorf("the pods on %s hold %d GPUs of 8", node, n)
		}
	}
}
