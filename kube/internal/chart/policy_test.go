package chart

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/berth-project/berth/kube/internal/controlplane"
	"github.com/berth-project/berth/kube/internal/testcluster"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// install applies the chart, with the given values, and a definition of Model without rules.
func install(c *testcluster.Cluster, args ...string) {
	c.Helper()
	c.Install("testdata/models.yaml")
	c.Kubectl(render(c, append(args, "--set", "crds.install=false")...), "apply", "--server-side", "--force-conflicts", "-f", "-")
}

// aPod is a pod with metadata, as JSON.
func aPod(name, metadata string) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q, %s}, "spec": {"containers": [{"name": "main", "image": "i"}]}}`, name, metadata)
}

// aModel is a Model with a spec, as JSON.
func aModel(name, spec string) string {
	return fmt.Sprintf(`{"apiVersion": "berth.dev/v1alpha1", "kind": "Model", "metadata": {"name": %q}, "spec": {%s}}`, name, spec)
}

// TestPolicies checks what the policies deny, for a user with the role edit in a namespace, for
// berth-scheduler and for an administrator.
func TestPolicies(t *testing.T) {
	c := testcluster.New(t, controlplane.ControllerManager)
	restricted(c)
	install(c, "--set", "webhook.enabled=false", "--set", "scheduler.names={berth-scheduler,berth-spread}")
	c.Kubectl("", "create", "rolebinding", "alice", "--clusterrole=edit", "--user=alice")
	as := func(user, input string, args ...string) (string, error) {
		return c.TryKubectl(input, append([]string{"--as", user}, args...)...)
	}
	// A policy has effect some time after it was created, and the controller manager adds the rules
	// about Models to the role edit.
	forged := `"annotations": {"berth.dev/devices": "[]"}`
	c.Eventually(func() string {
		out, err := as("alice", aPod("forged", forged), "create", "--dry-run=server", "-f", "-")
		if err == nil || !strings.Contains(out, "only a scheduler sets the annotation berth.dev/devices: alice may not bind pods in namespace default") {
			return fmt.Sprintf("%v: %s", err, out)
		}
		if out, err := as("alice", aModel("early", `"replicas": 1`), "create", "--dry-run=server", "-f", "-"); err != nil {
			return out
		}
		return ""
	})
	cases := []struct {
		name, user, input string
		args              []string
		want              string // of the answer; "" if the request succeeds without a warning
	}{
		{"a plain pod", "alice", aPod("plain", `"labels": {"a": "b"}`), []string{"create", "-f", "-"}, ""},
		{"another annotation of Berth", "alice", aPod("other", `"annotations": {"berth.dev/queue": "a"}`), []string{"create", "-f", "-"}, ""},
		{"a forged reservation", "alice", aPod("forged", `"annotations": {"berth.dev/reservation": "{}"}`), []string{"create", "-f", "-"}, "only a scheduler sets the annotation berth.dev/reservation"},
		{"a forged annotation later", "alice", "", []string{"annotate", "pod", "plain", "berth.dev/devices=[]"}, "only a scheduler sets the annotation berth.dev/devices"},
		{"a label later", "alice", "", []string{"label", "pod", "plain", "c=d"}, ""},
		{"an administrator", "admin", aPod("restored", forged), []string{"create", "-f", "-", "--as-group=system:masters"}, ""},
		{"an annotation that stays", "alice", "", []string{"label", "pod", "restored", "c=d"}, ""},
		{"an annotation that is removed", "alice", "", []string{"annotate", "pod", "restored", "berth.dev/devices-"}, "only a scheduler sets the annotation berth.dev/devices"},
		{"a pod that claims to be a replica", "alice", aPod("replica", `"labels": {"berth.dev/model": "chat"}`), []string{"create", "-f", "-"}, "the label berth.dev/model makes this pod count as a replica of model chat"},
		{"a pod of a ReplicaSet", "alice", aPod("owned", `"labels": {"berth.dev/model": "chat"}, "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a", "uid": "1", "controller": true}]`), []string{"create", "-f", "-"}, ""},
		{"a model", "alice", aModel("plain", `"replicas": 1`), []string{"create", "-f", "-"}, ""},
		{"a model of a profile", "alice", aModel("spread", `"schedulerName": "berth-spread"`), []string{"create", "-f", "-"}, ""},
		{"a model of no profile", "alice", aModel("lost", `"schedulerName": "other"`), []string{"create", "-f", "-"}, "spec.schedulerName: no scheduler of Berth is named other; the names are berth-scheduler, berth-spread"},
		{"another profile later", "alice", "", []string{"patch", "model", "plain", "--type=merge", "-p", `{"spec": {"schedulerName": "other"}}`}, "no scheduler of Berth is named other"},
	}
	for _, k := range cases {
		out, err := as(k.user, k.input, k.args...)
		warned := strings.Contains(out, "Warning")
		switch {
		case k.want == "" && (err != nil || warned):
			t.Errorf("%s: %v: %s", k.name, err, out)
		case k.want != "" && !strings.Contains(out, k.want):
			t.Errorf("%s: %v: %s, want %s", k.name, err, out, k.want)
		case k.want != "" && !warned && err == nil:
			t.Errorf("%s is admitted: %s", k.name, out)
		}
	}
	if err := reserve(c, "plain"); err != nil {
		t.Errorf("berth-scheduler: %v", err)
	}
	c.Eventually(func() string { return typeErrors(c) })
}

// reserve sets an annotation of a pod as berth-scheduler does, with its permissions.
func reserve(c *testcluster.Cluster, pod string) error {
	config := c.CP.Config()
	config.Impersonate.UserName = "system:serviceaccount:" + Namespace + ":berth-scheduler"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	patch := []byte(`{"metadata": {"annotations": {"berth.dev/reservation": "{}"}}}`)
	_, err = client.CoreV1().Pods(testcluster.Namespace).Patch(c.Ctx, pod, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// typeErrors returns what the controller manager found wrong in the expressions of the policies.
func typeErrors(c *testcluster.Cluster) string {
	list, err := c.Client.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(c.Ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 3 {
		return fmt.Sprintf("%d policies, want 3: %v", len(list.Items), err)
	}
	for _, p := range list.Items {
		if p.Status.TypeChecking == nil {
			return p.Name + " was not checked yet"
		}
		if w := p.Status.TypeChecking.ExpressionWarnings; len(w) > 0 {
			return fmt.Sprintf("%s: %v", p.Name, w)
		}
	}
	return ""
}

// TestWebhookOutage checks that an outage of the webhook blocks new Models and changes of their
// spec if failurePolicy is Fail, and nothing else; and nothing at all if it is Ignore.
func TestWebhookOutage(t *testing.T) {
	c := testcluster.New(t)
	restricted(c)
	install(c, "--set", "webhook.failurePolicy=Ignore", "--set", "webhook.timeoutSeconds=1")
	c.Apply(aModel("first", `"replicas": 1`)) // the definition may not be served yet
	install(c, "--set", "webhook.failurePolicy=Fail", "--set", "webhook.timeoutSeconds=1")
	c.Eventually(func() string {
		out, err := c.TryKubectl(aModel("second", `"replicas": 1`), "create", "-f", "-")
		if err == nil || !strings.Contains(out, `failed calling webhook "models.berth.dev"`) {
			return fmt.Sprintf("a Model is created: %v: %s", err, out)
		}
		return ""
	})
	if out, err := c.TryKubectl("", "patch", "model", "first", "--type=merge", "-p", `{"spec": {"replicas": 2}}`); err == nil {
		t.Errorf("the spec of a Model is changed: %s", out)
	}
	began := time.Now()
	c.Kubectl("", "label", "model", "first", "a=b")
	c.Kubectl("", "patch", "model", "first", "--subresource=status", "--type=merge", "-p", `{"status": {"replicas": 1}}`)
	c.Kubectl("", "patch", "model", "first", "--type=merge", "-p", `{"metadata": {"finalizers": ["berth.dev/model"]}}`)
	c.Kubectl("", "delete", "model", "first", "--wait=false")
	c.Kubectl("", "patch", "model", "first", "--type=merge", "-p", `{"spec": {"replicas": 3}, "metadata": {"finalizers": []}}`)
	c.Kubectl(aPod("plain", `"labels": {"a": "b"}`), "create", "-f", "-")
	c.Kubectl(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}`, "create", "-f", "-")
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("requests that the webhook is not for took %s", took)
	}
	install(c, "--set", "webhook.failurePolicy=Ignore", "--set", "webhook.timeoutSeconds=1")
	c.Eventually(func() string {
		if out, err := c.TryKubectl(aModel("third", `"replicas": 1`), "apply", "-f", "-"); err != nil {
			return out
		}
		return ""
	})
	if got := webhookRules(c); got != "berth.dev/models" {
		t.Errorf("the webhook is called for %s", got)
	}
}

// webhookRules returns the resources of all webhooks.
func webhookRules(c *testcluster.Cluster) string {
	c.Helper()
	list, err := c.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(c.Ctx, metav1.ListOptions{})
	if err != nil {
		c.Fatal(err)
	}
	var out []string
	for _, w := range list.Items {
		for _, h := range w.Webhooks {
			for _, r := range h.Rules {
				out = append(out, strings.Join(r.APIGroups, "+")+"/"+strings.Join(r.Resources, "+"))
			}
		}
	}
	return strings.Join(out, " ")
}

// decode reads JSON that kubectl printed.
func decode[T any](t testing.TB, text string) T {
	t.Helper()
	var out T
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}
