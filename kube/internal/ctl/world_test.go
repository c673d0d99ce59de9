package ctl_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-project/berth/kube/command"
	"github.com/berth-project/berth/kube/internal/controlplane"
	"github.com/berth-project/berth/kube/internal/testcluster"
	"github.com/berth-project/berth/plugins/standard"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

var (
	update   = flag.Bool("update", false, "write the golden files")
	clusters = flag.Int("clusters", 8, "how many random clusters TestDecisions compares")
)

func TestMain(m *testing.M) {
	registry := standard.Registry()
	testcluster.Main(m,
		func() int { return command.Main(registry, os.Args[1:], os.Stderr) },
		func() int { return command.Controller(registry, os.Args[1:], os.Stderr) })
}

// The tests of this package use short names for what testcluster has.
const (
	gpu       = testcluster.GPU
	namespace = testcluster.Namespace
)

var (
	inGang  = testcluster.InGang
	inQueue = testcluster.InQueue
)

// world is a cluster that kubectl berth is asked about.
type world struct {
	*testcluster.Cluster
	ctx    context.Context
	cp     *controlplane.ControlPlane
	client kubernetes.Interface
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{}
	w.connect(t)
	return w
}

// connect starts a control plane with kwok and the components.
func (w *world) connect(t testing.TB, components ...controlplane.Component) {
	t.Helper()
	w.start(t, controlplane.Options{Components: components})
}

// start starts a control plane with kwok.
func (w *world) start(t testing.TB, o controlplane.Options) {
	t.Helper()
	c := testcluster.NewWith(t, o)
	w.Cluster, w.ctx, w.cp, w.client = c, c.Ctx, c.CP, c.Client
}

func (w *world) addNodes(nodes ...controlplane.Node) { w.Helper(); w.AddNodes(nodes...) }
func (w *world) apply(manifests string)              { w.Helper(); w.Apply(manifests) }
func (w *world) create(pods ...*corev1.Pod)          { w.Helper(); w.Create(pods...) }
func (w *world) pods() map[string]*corev1.Pod        { w.Helper(); return w.Pods() }
func (w *world) deletePods()                         { w.Helper(); w.DeletePods() }
func (w *world) eventually(condition func() string)  { w.Helper(); w.Eventually(condition) }

// node returns a node with GPUs.
func node(name string, gpus int, edit ...func(*controlplane.Node)) controlplane.Node {
	return testcluster.Node(name, gpus, testcluster.L4, edit...)
}

// pod returns a pod that berth-scheduler places, with a secret that no answer may have.
func pod(name string, gpus int64, edit ...func(*corev1.Pod)) *corev1.Pod {
	secret := func(p *corev1.Pod) {
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TOKEN", Value: "secret-of-" + name}}
		p.Annotations["example.com/token"] = "secret-of-" + name
	}
	return testcluster.Pod(name, gpus, append([]func(*corev1.Pod){secret}, edit...)...)
}

func withHostPort(port int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: port, HostPort: port}}
	}
}

func withSelector(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{key: value} }
}

// bind binds a pod to a node, as a scheduler does.
func (w *world) bind(pod, node string) {
	w.Helper()
	b := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}
	if err := w.client.CoreV1().Pods(namespace).Bind(w.ctx, b, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	w.eventually(func() string {
		if phase := w.pods()[pod].Status.Phase; phase != corev1.PodRunning {
			return fmt.Sprintf("pod %s is %s", pod, phase)
		}
		return ""
	})
}

// result is what a command wrote, and its exit code.
type result struct {
	stdout, stderr string
	code           int
}

// run runs kubectl berth on the cluster.
func (w *world) run(args ...string) result {
	w.Helper()
	return run(append([]string{"--kubeconfig", w.cp.Kubeconfig()}, args...)...)
}

func run(args ...string) result {
	var stdout, stderr bytes.Buffer
	code := command.Kubectl(standard.Registry(), args, strings.NewReader(""), &stdout, &stderr)
	return result{stdout.String(), stderr.String(), code}
}

// answer runs kubectl berth, and fails the test if the exit code is not 0.
func (w *world) answer(args ...string) string {
	w.Helper()
	r := w.run(args...)
	if r.code != 0 {
		w.Fatalf("kubectl berth %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	return r.stdout
}

// golden compares the text with the file in testdata.
func golden(t testing.TB, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s differs; it is now\n%s", file, text)
	}
}

// scheduler starts berth-scheduler, and returns a function that ends it.
func (w *world) scheduler(flags ...string) (stop func()) {
	w.Helper()
	return w.Scheduler(w.cp.Kubeconfig(), append([]string{"--leader-elect=false"}, flags...)...).Kill
}
