package controlplane

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// checkGoroutines checks at the end of the test that no goroutine is left. It must be called
// before a control plane is started, since cleanup functions run in reverse order.
func checkGoroutines(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
}

// pidsOf returns the process identifiers of components, all of which must run.
func pidsOf(t *testing.T, cp *ControlPlane, components ...Component) []int {
	t.Helper()
	var pids []int
	for _, c := range components {
		pid := cp.Pid(c)
		if !exists(pid) {
			t.Fatalf("%s does not run", c)
		}
		pids = append(pids, pid)
	}
	return pids
}

// exists reports whether there is a process with this identifier, a zombie included.
func exists(pid int) bool {
	_, err := os.Stat("/proc/" + strconv.Itoa(pid))
	return pid != 0 && !errors.Is(err, fs.ErrNotExist)
}

// residentMiB returns the resident memory of a process.
func residentMiB(t *testing.T, pid int) int {
	t.Helper()
	file, err := os.Open("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if amount, ok := strings.CutPrefix(lines.Text(), "VmRSS:"); ok {
			kib, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(amount, "kB")))
			if err != nil {
				t.Fatal(err)
			}
			return kib >> 10
		}
	}
	t.Fatalf("process %d has no resident memory", pid)
	return 0
}

func createDeployment(ctx context.Context, t *testing.T, client kubernetes.Interface, replicas int32) {
	t.Helper()
	labels := map[string]string{"app": "web"}
	_, err := client.AppsV1().Deployments(metav1.NamespaceDefault).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// ended reports whether a process does not run. A process whose parent is gone may remain
// as a zombie for a while.
func ended(pid int) bool {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	// The state follows the name of the program, which is in parentheses.
	_, rest, _ := strings.Cut(string(status), ") ")
	return strings.HasPrefix(rest, "Z")
}
