package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-project/berth/kube/internal/testcluster"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// restricted creates the namespace of Berth. Pods there must follow the strictest of the Pod
// Security Standards.
func restricted(c *testcluster.Cluster) {
	c.Helper()
	_, err := c.Client.CoreV1().Namespaces().Create(c.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: Namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	if err != nil {
		c.Fatal(err)
	}
}

// TestApply applies the objects of each example to an API server, which refuses unknown fields. A
// pod of each Deployment is created too, as far as the API server checks it.
func TestApply(t *testing.T) {
	c := testcluster.New(t)
	restricted(c)
	c.Install("testdata/servicemonitors.yaml")
	for name, args := range examples(t) {
		text := render(t, args...)
		count := len(objects(t, text))
		// A definition is served some time after it was created.
		c.Eventually(func() string {
			out, err := c.TryKubectl(text, "apply", "--server-side", "--force-conflicts", "--validate=strict", "--dry-run=server", "-f", "-")
			if err != nil || strings.Count(out, " serverside-applied (server dry run)\n") != count || strings.Contains(out, "Warning") {
				return fmt.Sprintf("%s: %v: %s", name, err, out)
			}
			return ""
		})
		c.Kubectl(text, "apply", "--server-side", "--force-conflicts", "--validate=strict", "-f", "-")
		for _, d := range deployments(t, text) {
			pod := &corev1.Pod{ObjectMeta: *d.Spec.Template.ObjectMeta.DeepCopy(), Spec: d.Spec.Template.Spec}
			pod.Name = d.Name
			if _, err := c.Client.CoreV1().Pods(Namespace).Create(c.Ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
				t.Errorf("%s: a pod of %s: %v", name, d.Name, err)
			}
		}
	}
	checkAccounts(c)
}

// checkAccounts asks the API server what the service accounts and the users of aggregated roles
// may do.
func checkAccounts(c *testcluster.Cluster) {
	c.Helper()
	const scheduler, controller = "system:serviceaccount:" + Namespace + ":berth-scheduler", "system:serviceaccount:" + Namespace + ":berth-controller"
	for _, q := range []struct {
		user, namespace, question string
		want                      bool
	}{
		{scheduler, "default", "create pods/binding", true},
		{scheduler, "default", "create pods", false},
		{scheduler, "default", "delete pods", false},
		{scheduler, "default", "get secrets", false},
		{scheduler, Namespace, "update leases/berth-scheduler", true},
		{scheduler, Namespace, "update leases/berth-controller", false},
		{controller, "default", "create deployments.apps", true},
		{controller, "default", "patch pods", true},
		{controller, "default", "create pods", false},
		{controller, "default", "create pods/binding", false},
		{controller, "default", "get secrets", false},
		{controller, "default", "create secrets", false},
		{controller, Namespace, "get secrets/berth-webhook", true},
		{controller, Namespace, "get secrets/other", false},
		{controller, Namespace, "list secrets", false},
		{controller, "", "patch validatingwebhookconfigurations/berth-models", true},
		{controller, "", "patch validatingwebhookconfigurations/other", false},
		{controller, "", "create clusterrolebindings", false},
	} {
		args := append([]string{"auth", "can-i", "--as", q.user}, strings.Fields(q.question)...)
		if resource, sub, ok := strings.Cut(args[5], "/"); ok && (sub == "binding" || sub == "status") {
			args = append(slices.Clone(args[:5]), resource, "--subresource", sub)
		}
		if q.namespace != "" {
			args = append(args, "--namespace", q.namespace)
		}
		out, _ := c.TryKubectl("", args...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if got := lines[len(lines)-1]; got != map[bool]string{true: "yes", false: "no"}[q.want] {
			c.Errorf("%s in %q: %s: %s, want %t", q.user, q.namespace, q.question, out, q.want)
		}
	}
}
