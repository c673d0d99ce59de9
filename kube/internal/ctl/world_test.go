package ctl_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-project/berth/kube/command"
	"github.com/berth-project/berth/kube/internal/controlplane"
	"github.com/berth-project/berth/plugins/standard"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

var (
	update   = flag.Bool("update", false, "write the golden files")
	clusters = flag.Int("clusters", 8, "how many random clusters TestDecisions compares")
)

// asScheduler is set in the environment of processes that are berth-scheduler.
const asScheduler = "BERTH_CTL_SCHEDULER"

func TestMain(m *testing.M) {
	if os.Getenv(asScheduler) != "" {
		os.Exit(command.Main(standard.Registry(), os.Args[1:], os.Stderr))
	}
	os.Exit(m.Run())
}

const (
	gpu       = "nvidia.com/gpu"
	namespace = "default"
	patience  = 2 * time.Minute
)

// world is a control plane with a client.
type world struct {
	testing.TB
	ctx    context.Context
	cp     *controlplane.ControlPlane
	client kubernetes.Interface
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{TB: t, ctx: t.Context()}
	w.connect()
	return w
}

// connect starts a control plane with kwok and the components.
func (w *world) connect(components ...controlplane.Component) {
	w.Helper()
	w.start(controlplane.Options{Components: append(components, controlplane.Kwok)})
}

// start starts a control plane.
func (w *world) start(o controlplane.Options) {
	w.Helper()
	w.cp = controlplane.StartForTest(w.TB, o)
	config := w.cp.Config()
	config.QPS = -1
	var err error
	if w.client, err = kubernetes.NewForConfig(config); err != nil {
		w.Fatal(err)
	}
}

// node returns a node with GPUs.
func node(name string, gpus int, edit ...func(*controlplane.Node)) controlplane.Node {
	n := controlplane.Node{
		Name:        name,
		Labels:      map[string]string{"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.count": fmt.Sprint(gpus), "nvidia.com/gpu.memory": "23034"},
		Allocatable: corev1.ResourceList{gpu: *resource.NewQuantity(int64(gpus), resource.DecimalSI)},
	}
	for _, e := range edit {
		e(&n)
	}
	return n
}

func (w *world) addNodes(nodes ...controlplane.Node) {
	w.Helper()
	if err := w.cp.AddNodes(w.ctx, nodes...); err != nil {
		w.Fatal(err)
	}
}

// pod returns a pod that berth-scheduler places.
func pod(name string, gpus int64, edit ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}, Annotations: map[string]string{"example.com/token": "secret-of-" + name}},
		Spec: corev1.PodSpec{
			SchedulerName: command.DefaultName,
			Containers: []corev1.Container{{
				Name: "main", Image: "image", Env: []corev1.EnvVar{{Name: "TOKEN", Value: "secret-of-" + name}},
			}},
		},
	}
	if gpus > 0 {
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{gpu: *resource.NewQuantity(gpus, resource.DecimalSI)}
	}
	for _, e := range edit {
		e(p)
	}
	return p
}

func inGang(name string, min int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels["berth.dev/group-name"], p.Labels["berth.dev/group-min-member"] = name, fmt.Sprint(min)
	}
}

func withHostPort(port int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: port, HostPort: port}}
	}
}

func withSelector(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{key: value} }
}

// create creates the pods.
func (w *world) create(pods ...*corev1.Pod) {
	w.Helper()
	for _, p := range pods {
		if _, err := w.client.CoreV1().Pods(p.Namespace).Create(w.ctx, p, metav1.CreateOptions{}); err != nil {
			w.Fatal(err)
		}
	}
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

// pods returns all pods, by name.
func (w *world) pods() map[string]*corev1.Pod {
	w.Helper()
	list, err := w.client.CoreV1().Pods(namespace).List(w.ctx, metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	out := map[string]*corev1.Pod{}
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out
}

func (w *world) deletePods() {
	w.Helper()
	if err := w.client.CoreV1().Pods(namespace).DeleteCollection(w.ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{}); err != nil {
		w.Fatal(err)
	}
	w.eventually(func() string {
		if n := len(w.pods()); n > 0 {
			return fmt.Sprintf("%d pods are left", n)
		}
		return ""
	})
}

// eventually waits until the condition returns "", and fails the test with what it returned
// last if it does not.
func (w *world) eventually(condition func() string) {
	w.Helper()
	last := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if last = condition(); last == "" {
			return
		}
	}
	w.Fatal(last)
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
	log := filepath.Join(w.TempDir(), "scheduler.log")
	file, err := os.Create(log)
	if err != nil {
		w.Fatal(err)
	}
	c := exec.Command(os.Args[0], append([]string{"--kubeconfig", w.cp.Kubeconfig(), "--address", "", "--secure-address", "", "--leader-elect=false"}, flags...)...)
	c.Env, c.Stderr, c.Stdout = append(os.Environ(), asScheduler+"=1"), file, file
	if err := c.Start(); err != nil {
		w.Fatal(err)
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		_ = c.Process.Kill()
		_ = c.Wait()
		file.Close()
		if w.Failed() {
			text, _ := os.ReadFile(log)
			w.Logf("the log of the scheduler:\n%s", text)
		}
	}
	w.Cleanup(stop)
	return stop
}
