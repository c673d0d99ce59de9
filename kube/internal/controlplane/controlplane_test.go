package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const gpus corev1.ResourceName = "nvidia.com/gpu"

// TestControlPlane follows one control plane from its start to its end, since a start of
// its own for every step would take most of the time of the test.
func TestControlPlane(t *testing.T) {
	checkGoroutines(t)
	logs := t.TempDir()
	begin := time.Now()
	cp := StartForTest(t, Options{Components: []Component{Kwok}, LogDir: logs})
	t.Logf("etcd, kube-apiserver and kwok are ready after %v", time.Since(begin).Round(time.Millisecond))
	ctx := t.Context()
	client, err := kubernetes.NewForConfig(cp.Config())
	if err != nil {
		t.Fatal(err)
	}
	pids := pidsOf(t, cp, Etcd, APIServer, Kwok)

	addNode(ctx, t, cp, client)
	runPod(ctx, t, client, "first")
	for _, c := range []Component{Etcd, APIServer, Kwok} {
		t.Logf("%s: %d MiB resident", c, residentMiB(t, cp.Pid(c)))
	}

	for name, restart := range map[string]func() error{
		"apiserver restarted": func() error { return cp.Restart(ctx, APIServer) },
		"apiserver killed and restarted": func() error {
			if err := cp.Kill(APIServer); err != nil {
				return err
			}
			if pid := cp.Pid(APIServer); pid != 0 {
				return fmt.Errorf("the killed apiserver has the process identifier %d", pid)
			}
			return cp.Restart(ctx, APIServer)
		},
		"etcd restarted": func() error { return cp.Restart(ctx, Etcd) },
		"etcd killed and restarted": func() error {
			if err := cp.Kill(Etcd); err != nil {
				return err
			}
			return cp.Restart(ctx, Etcd)
		},
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			if err := restart(); err != nil {
				t.Fatal(err)
			}
			t.Logf("ready after %v", time.Since(begin).Round(time.Millisecond))
			pod, err := client.CoreV1().Pods("work").Get(ctx, "first", metav1.GetOptions{})
			if err != nil || pod.Status.Phase != corev1.PodRunning {
				t.Fatalf("pod after the restart: phase %q, error %v", pod.Status.Phase, err)
			}
			pids = append(pids, pidsOf(t, cp, Etcd, APIServer)...)
		})
	}
	runPod(ctx, t, client, "second")

	if err := cp.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := cp.Stop(); err != nil {
		t.Errorf("a second Stop: %v", err)
	}
	checkStopped(t, cp, pids, logs)
}

// checkStopped checks that a control plane has left nothing but its logs behind.
func checkStopped(t *testing.T, cp *ControlPlane, pids []int, logs string) {
	t.Helper()
	if left := slices.DeleteFunc(slices.Clone(pids), func(pid int) bool { return !exists(pid) }); len(left) > 0 {
		t.Errorf("processes %v are still there", left)
	}
	if _, err := os.Stat(cp.dir); !os.IsNotExist(err) {
		t.Errorf("directory %s is still there: %v", cp.dir, err)
	}
	for _, c := range []Component{Etcd, APIServer, Kwok} {
		if content, err := os.ReadFile(filepath.Join(logs, string(c)+".log")); err != nil || len(content) == 0 {
			t.Errorf("log of %s: %d bytes, error %v", c, len(content), err)
		}
	}
	if err := cp.Restart(context.Background(), Etcd); err == nil {
		t.Error("Restart after Stop returned no error")
	}
}

// addNode adds a node and checks that it is as described and has a lease.
func addNode(ctx context.Context, t *testing.T, cp *ControlPlane, client kubernetes.Interface) {
	t.Helper()
	begin := time.Now()
	err := cp.AddNodes(ctx, Node{
		Name:        "node-a",
		Labels:      map[string]string{"zone": "one"},
		Allocatable: corev1.ResourceList{gpus: resource.MustParse("8")},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the node is ready after %v", time.Since(begin).Round(time.Millisecond))
	node, err := client.CoreV1().Nodes().Get(ctx, "node-a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := node.Status.Allocatable[gpus]; got.Value() != 8 || node.Labels["zone"] != "one" {
		t.Errorf("node has %v GPUs and labels %v, want 8 and zone=one", got.Value(), node.Labels)
	}
	waitFor(t, "the lease of the node", func() (bool, error) {
		leases, err := client.CoordinationV1().Leases("kube-node-lease").List(ctx, metav1.ListOptions{})
		return err == nil && len(leases.Items) == 1 && leases.Items[0].Name == "node-a", err
	})
}

// runPod creates a pod that is bound to the node and waits until it runs.
func runPod(ctx context.Context, t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "work"}}
	if _, err := client.CoreV1().Namespaces().Get(ctx, "work", metav1.GetOptions{}); err != nil {
		if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "work"},
		Spec: corev1.PodSpec{
			SchedulerName: "none",
			Containers:    []corev1.Container{{Name: "main", Image: "none"}},
		},
	}
	pod, err := client.CoreV1().Pods("work").Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	err = client.CoreV1().Pods("work").Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: "node-a"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	waitForPhase(ctx, t, client, name, corev1.PodRunning)
}

func waitForPhase(ctx context.Context, t *testing.T, client kubernetes.Interface, name string, phase corev1.PodPhase) {
	t.Helper()
	waitFor(t, fmt.Sprintf("pod %s to be %s", name, phase), func() (bool, error) {
		pod, err := client.CoreV1().Pods("work").Get(ctx, name, metav1.GetOptions{})
		return err == nil && pod.Status.Phase == phase, err
	})
}

// waitFor fails the test if a condition does not become true in time.
func waitFor(t *testing.T, what string, condition func() (bool, error)) {
	t.Helper()
	err := poll(t.Context(), func() error {
		if ok, err := condition(); !ok {
			return fmt.Errorf("not yet: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("wait for %s: %v", what, err)
	}
}

// TestAllComponents checks that the controllers and the scheduler of Kubernetes work: a
// deployment becomes a pod, which is scheduled and runs.
func TestAllComponents(t *testing.T) {
	checkGoroutines(t)
	begin := time.Now()
	cp := StartForTest(t, Options{Components: []Component{ControllerManager, Scheduler, Kwok, LWS}})
	t.Logf("all components are ready after %v", time.Since(begin).Round(time.Millisecond))
	ctx := t.Context()
	config, err := clientcmd.BuildConfigFromFlags("", cp.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := cp.AddNodes(ctx, Node{Name: "node-a"}, Node{Name: "node-b"}); err != nil {
		t.Fatal(err)
	}
	createDeployment(ctx, t, client, 3)
	waitFor(t, "the pods of the deployment", func() (bool, error) {
		pods, err := client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		running := 0
		for _, pod := range pods.Items {
			if pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodRunning {
				running++
			}
		}
		return running == 3, fmt.Errorf("%d of %d pods run", running, len(pods.Items))
	})
	for _, c := range components {
		t.Logf("%s: %d MiB resident", c, residentMiB(t, cp.Pid(c)))
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil || !strings.HasPrefix(version.GitVersion, "v1.") {
		t.Errorf("version of the API server: %v, error %v", version, err)
	}
}
