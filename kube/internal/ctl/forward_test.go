package ctl_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-project/berth/kube/internal/controlplane"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// forwards makes kwok forward all ports of all pods to a port of this machine.
const forwards = `apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterPortForward
metadata: {name: scheduler}
spec:
  forwards:
  - target: {address: 127.0.0.1, port: %s}
`

// TestForward checks that the pod of the leader is found by the lease, and is asked through the
// API server with the credentials of the user.
func TestForward(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "forwards.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, forwards, port), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &world{}
	w.start(t, controlplane.Options{
		Flags: map[controlplane.Component][]string{controlplane.Kwok: {"--config=" + file, "--node-ip=127.0.0.1"}},
	})
	if r := w.run("snapshot", "--session", "list"); r.code != 2 || !strings.Contains(r.stderr, "there is no lease kube-system/berth-scheduler") {
		t.Errorf("without a scheduler: exit code %d, %s", r.code, r.stderr)
	}
	w.addNodes(node("node-0", 2))
	w.scheduler("--secure-address", address, "--leader-elect")
	w.create(pod("a", 1))
	w.eventually(func() string {
		if w.pods()["a"].Spec.NodeName == "" {
			return "the pod is not bound"
		}
		return ""
	})
	if r := w.run("snapshot", "--session", "list"); r.code != 2 || !strings.Contains(r.stderr, "which is not a pod in namespace kube-system; name its address with --scheduler-address") {
		t.Errorf("without a pod: exit code %d, %s", r.code, r.stderr)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	leader := pod(host, 0)
	leader.Namespace, leader.Spec.NodeName, leader.Spec.SchedulerName = metav1.NamespaceSystem, "node-0", "none"
	w.create(leader)
	w.eventually(func() string {
		p, err := w.client.CoreV1().Pods(leader.Namespace).Get(w.ctx, leader.Name, metav1.GetOptions{})
		if err != nil || p.Status.Phase != corev1.PodRunning {
			return fmt.Sprintf("the pod of the scheduler is not running: %v", err)
		}
		return ""
	})
	list := w.answer("snapshot", "--session", "list")
	lines := strings.Split(strings.TrimSpace(list), "\n")
	if len(lines) < 2 || !strings.HasPrefix(lines[0], "SESSION") {
		t.Fatalf("the list is\n%s", list)
	}
	number := strings.Fields(lines[1])[0]
	if text := w.answer("snapshot", "--session", number); !strings.HasPrefix(text, `{"apiVersion":"berth.dev/v1alpha1","kind":"Snapshot","version":1,`) {
		t.Errorf("the input is\n%s", text)
	}
	for want, args := range map[string][]string{
		"the input of session 1000000 is not kept":                {"--session", "1000000"},
		"want the number of a session, or \"list\"":               {"--session", "last"},
		"impersonation is not supported":                          {"--session", "list", "--scheduler-address", address, "--insecure-skip-scheduler-tls-verify", "--as", "jane"},
		"certificate":                                             {"--session", "list", "--scheduler-address", address},
		"omit --filename":                                         {"--session", "list", "-f", "objects.json"},
		"berth-scheduler does not answer":                         {"--session", "list", "--scheduler-address", "127.0.0.1:1"},
		"there is no lease kube-system/other; check that berth-s": {"--session", "list", "--lease-name", "other"},
	} {
		if r := w.run(append([]string{"snapshot"}, args...)...); r.code != 2 || !strings.Contains(r.stderr, want) {
			t.Errorf("%v: exit code %d, %s", args, r.code, r.stderr)
		}
	}
}
