package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-project/berth/kube/command"
	"github.com/berth-project/berth/kube/internal/controlplane"
	"github.com/berth-project/berth/plugins/standard"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// asScheduler is set in the environment of processes that are berth-scheduler.
const asScheduler = "BERTH_E2E_SCHEDULER"

func TestMain(m *testing.M) {
	if os.Getenv(asScheduler) != "" {
		os.Exit(command.Main(standard.Registry(), os.Args[1:], os.Stderr))
	}
	os.Exit(m.Run())
}

const (
	gpu       = "nvidia.com/gpu"
	namespace = "default"
)

// world is a control plane with a client.
type world struct {
	testing.TB
	ctx    context.Context
	cp     *controlplane.ControlPlane
	client kubernetes.Interface
	logs   string // the folder of the logs of schedulers
	access string // the kubeconfig of schedulers, which has their permissions only
	starts int
}

func newWorld(t testing.TB, components ...controlplane.Component) *world {
	t.Helper()
	w := &world{TB: t, ctx: t.Context(), logs: t.TempDir()}
	w.cp = controlplane.StartForTest(t, controlplane.Options{Components: append(components, controlplane.Kwok)})
	config := w.cp.Config()
	config.QPS = -1
	var err error
	if w.client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	w.install("../config/rbac.yaml")
	w.access = w.actAs("system:serviceaccount:kube-system:berth-scheduler")
	return w
}

// install applies a file of manifests.
func (w *world) install(file string) {
	w.Helper()
	w.kubectl("", "apply", "--server-side", "-f", file)
}

// apply applies manifests.
func (w *world) apply(manifests string) {
	w.Helper()
	w.eventually(func() string { // a definition that was just installed is not served at once
		if out, err := w.tryKubectl(manifests, "apply", "-f", "-"); err != nil {
			return fmt.Sprintf("%v: %s", err, out)
		}
		return ""
	})
}

// kubectl runs kubectl and returns its output.
func (w *world) kubectl(input string, args ...string) string {
	w.Helper()
	out, err := w.tryKubectl(input, args...)
	if err != nil {
		w.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

func (w *world) tryKubectl(input string, args ...string) (string, error) {
	bin, err := controlplane.Binaries()
	if err != nil {
		return "", err
	}
	cmd := exec.Command(filepath.Join(bin, "kubectl"), append([]string{"--kubeconfig", w.cp.Kubeconfig()}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// actAs returns the path of a kubeconfig with the permissions of the user.
func (w *world) actAs(user string) string {
	w.Helper()
	config, err := clientcmd.LoadFromFile(w.cp.Kubeconfig())
	if err != nil {
		w.Fatal(err)
	}
	for _, info := range config.AuthInfos {
		info.Impersonate = user
	}
	path := filepath.Join(w.logs, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		w.Fatal(err)
	}
	return path
}

// addNodes adds nodes with 8 GPUs.
func (w *world) addNodes(count int) {
	w.Helper()
	var nodes []controlplane.Node
	for i := range count {
		nodes = append(nodes, gpuNode(fmt.Sprintf("node-%04d", i)))
	}
	if err := w.cp.AddNodes(w.ctx, nodes...); err != nil {
		w.Fatal(err)
	}
}

// process is a scheduler that runs.
type process struct {
	*exec.Cmd
	log   string
	ended chan struct{}
}

// scheduler starts berth-scheduler. It is stopped when the test ends.
func (w *world) scheduler(flags ...string) *process {
	w.Helper()
	w.starts++
	p := &process{log: filepath.Join(w.logs, fmt.Sprintf("scheduler-%d.log", w.starts)), ended: make(chan struct{})}
	file, err := os.Create(p.log)
	if err != nil {
		w.Fatal(err)
	}
	p.Cmd = exec.Command(os.Args[0], append([]string{"--kubeconfig", w.access, "--address", "", "--secure-address", ""}, flags...)...)
	p.Env, p.Stderr, p.Stdout = append(os.Environ(), asScheduler+"=1"), file, file
	if err := p.Start(); err != nil {
		w.Fatal(err)
	}
	go func() {
		_ = p.Wait()
		file.Close()
		close(p.ended)
	}()
	w.Cleanup(func() {
		p.kill()
		if w.Failed() {
			text, _ := os.ReadFile(p.log)
			lines := strings.Split(string(text), "\n")
			w.Logf("the end of the log of %s:\n%s", filepath.Base(p.log), strings.Join(lines[max(0, len(lines)-40):], "\n"))
		}
	})
	return p
}

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

// kill ends the process at once.
func (p *process) kill() {
	_ = p.Process.Kill()
	<-p.ended
}

// stop asks the process to end, and waits until it has.
func (p *process) stop() {
	_ = p.Process.Signal(syscall.SIGTERM)
	<-p.ended
}

// pod returns a pod that berth-scheduler places.
func pod(name string, gpus int64, edit ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{
			SchedulerName: command.DefaultName,
			Containers:    []corev1.Container{{Name: "main", Image: "image"}},
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

func withPriority(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.PriorityClassName = name }
}

func preemptible(p *corev1.Pod) { p.Labels["berth.dev/preemptible"] = "true" }

// create creates the pods.
func (w *world) create(pods ...*corev1.Pod) {
	w.Helper()
	for _, p := range pods {
		if _, err := w.client.CoreV1().Pods(p.Namespace).Create(w.ctx, p, metav1.CreateOptions{}); err != nil {
			w.Fatal(err)
		}
	}
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

// patience is how long a condition may take to become true on a slow machine.
const patience = 2 * time.Minute

// allBound returns which of the pods is not bound to a node; "" if all are.
func (w *world) allBound(prefix string) string {
	for name, p := range w.pods() {
		if strings.HasPrefix(name, prefix) && p.Spec.NodeName == "" {
			return fmt.Sprintf("pod %s is not bound: %s", name, conditionText(p))
		}
	}
	return ""
}

func conditionText(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	return "no condition"
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
