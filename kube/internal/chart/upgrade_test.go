package chart

import (
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berth-project/berth/kube/internal/controlplane"
	"github.com/berth-project/berth/kube/internal/testcluster"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// kinds are the kinds of objects that the chart may create.
const kinds = "customresourcedefinitions,clusterroles,clusterrolebindings,roles,rolebindings,serviceaccounts,configmaps,deployments,services," +
	"poddisruptionbudgets,networkpolicies,resourcequotas,servicemonitors,validatingwebhookconfigurations,validatingadmissionpolicies,validatingadmissionpolicybindings"

// installed returns the objects of the chart in the cluster, without what the cluster adds to them
// and what counts changes.
func installed(c *testcluster.Cluster) map[string]any {
	c.Helper()
	text := c.Kubectl("", "get", kinds, "--all-namespaces", "-l", "app.kubernetes.io/part-of=berth", "-o", "json")
	out := map[string]any{}
	for _, u := range decode[struct{ Items []unstructured.Unstructured }](c.TB, text).Items {
		for _, field := range []string{"resourceVersion", "generation", "managedFields", "creationTimestamp", "uid"} {
			unstructured.RemoveNestedField(u.Object, "metadata", field)
		}
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", "deployment.kubernetes.io/revision")
		unstructured.RemoveNestedField(u.Object, "status")
		out[u.GetKind()+"/"+u.GetNamespace()+"/"+u.GetName()] = u.Object
	}
	return out
}

// nextVersion returns a copy of the chart with a later version: the definition of Queue has one more
// column, and the image is another.
func nextVersion(t *testing.T) string {
	t.Helper()
	next := filepath.Join(t.TempDir(), "berth")
	if err := os.CopyFS(next, os.DirFS(filepath.Join(root(t), Dir))); err != nil {
		t.Fatal(err)
	}
	edit := func(file, from, to string) {
		t.Helper()
		file = filepath.Join(next, file)
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), from) {
			t.Fatalf("%s does not have %q: %v", file, from, err)
		}
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), from, to)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	edit("Chart.yaml", "ersion: "+version(t), "ersion: 99.0.0")
	edit("files/crds/queues.berth.dev.yaml", "  - additionalPrinterColumns:\n", "  - additionalPrinterColumns:\n    - {name: Next, type: string, jsonPath: .spec.parent}\n")
	return next
}

// TestUpgrade installs the chart with helm, upgrades it to a later version with other values, and
// rolls it back. The pods run on the nodes of kwok, so that helm waits for them.
func TestUpgrade(t *testing.T) {
	c := testcluster.New(t, controlplane.ControllerManager, controlplane.Scheduler)
	c.AddNodes(controlplane.Node{Name: "a"}, controlplane.Node{Name: "b"}, controlplane.Node{Name: "c"}, controlplane.Node{Name: "d"})
	restricted(c)
	c.Install("testdata/servicemonitors.yaml")
	helm := func(args ...string) string {
		t.Helper()
		out, err := Helm(append(args, "--kubeconfig", c.CP.Kubeconfig(), "--namespace", Namespace)...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	out := helm("install", Release, Dir, "--wait", "--timeout", "2m", "--set", "networkPolicy.enabled=false")
	if !strings.Contains(out, "Berth "+version(t)+" is installed in namespace "+Namespace) {
		t.Errorf("the notes are:\n%s", out)
	}
	setAuthority(c)
	c.Apply(`{"apiVersion": "berth.dev/v1alpha1", "kind": "Queue", "metadata": {"name": "research"}, "spec": {}}`)
	before := installed(c)
	if len(before) < 30 {
		t.Errorf("%d objects are installed: %q", len(before), slices.Sorted(maps.Keys(before)))
	}
	pods := c.Kubectl("", "get", "pods", "-n", Namespace, "-o", "name")
	if strings.Count(pods, "pod/berth-scheduler-") != 2 || strings.Count(pods, "pod/berth-controller-") != 2 {
		t.Errorf("the pods are:\n%s", pods)
	}

	helm("upgrade", Release, nextVersion(t), "--wait", "--timeout", "4m", "--values", filepath.Join(root(t), Dir, "examples", "large-cluster.yaml"))
	checkUpgraded(c, installed(c))
	checkAuthority(c, "the upgrade")

	helm("rollback", Release, "1", "--wait", "--timeout", "4m")
	if d := cmp.Diff(before, installed(c)); d != "" {
		t.Errorf("objects after the rollback (-before +after):\n%s", d)
	}
	checkAuthority(c, "the rollback")

	helm("uninstall", Release)
	var left []string
	for name := range installed(c) {
		if !strings.HasPrefix(name, "CustomResourceDefinition/") {
			left = append(left, name)
		}
	}
	if len(left) > 0 {
		t.Errorf("the release leaves %q", left)
	}
	c.Kubectl("", "get", "queue", "research")
	// The definitions that were kept are taken over by the next installation.
	helm("install", Release, Dir)
}

// checkUpgraded checks what the later version and its values changed.
func checkUpgraded(c *testcluster.Cluster, objects map[string]any) {
	c.Helper()
	text := fmt.Sprint(objects["CustomResourceDefinition//queues.berth.dev"])
	if !strings.Contains(text, "name:Next") {
		c.Errorf("the definition of Queue is not upgraded: %s", text)
	}
	if text := fmt.Sprint(objects["Deployment/"+Namespace+"/berth-scheduler"]); !strings.Contains(text, "berth:99.0.0") || !strings.Contains(text, "replicas:3") {
		c.Errorf("the Deployment is not upgraded: %s", text)
	}
	for _, name := range []string{"ServiceMonitor/" + Namespace + "/berth-scheduler", "ResourceQuota/" + Namespace + "/berth-critical-pods", "NetworkPolicy/" + Namespace + "/berth-scheduler"} {
		if objects[name] == nil {
			c.Errorf("%s is missing; there are %q", name, slices.Sorted(maps.Keys(objects)))
		}
	}
}

// setAuthority adds the authority of the certificate to the webhook, as berth-controller does.
func setAuthority(c *testcluster.Cluster) {
	c.Helper()
	patch := fmt.Sprintf(`[{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": %q}]`, base64.StdEncoding.EncodeToString(c.CP.Config().CAData))
	if _, err := c.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Patch(c.Ctx, "berth-models", types.JSONPatchType, []byte(patch), metav1.PatchOptions{FieldManager: "berth-controller"}); err != nil {
		c.Fatal(err)
	}
}

// checkAuthority checks that the authority is still there.
func checkAuthority(c *testcluster.Cluster, after string) {
	c.Helper()
	w, err := c.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(c.Ctx, "berth-models", metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	if string(w.Webhooks[0].ClientConfig.CABundle) != string(c.CP.Config().CAData) {
		c.Errorf("after %s, caBundle is %q", after, w.Webhooks[0].ClientConfig.CABundle)
	}
}

// TestManifestApplied applies deploy/berth.yaml twice, as a user without Helm does, with the
// authority of the webhook set in between, and then hands the objects over to Helm.
func TestManifestApplied(t *testing.T) {
	c := testcluster.New(t)
	file := filepath.Join(root(t), manifest)
	c.Install(file)
	setAuthority(c)
	c.Install(file)
	checkAuthority(c, "the second apply")
	if _, err := Helm("install", Release, Dir, "--kubeconfig", c.CP.Kubeconfig(), "--namespace", Namespace); err == nil || !strings.Contains(err.Error(), "invalid ownership metadata") {
		t.Errorf("helm install: %v", err)
	}
	if _, err := Helm("install", Release, Dir, "--kubeconfig", c.CP.Kubeconfig(), "--namespace", Namespace, "--take-ownership"); err != nil {
		t.Error(err)
	}
	checkAuthority(c, "the installation by Helm")
	c.Kubectl("", "delete", "-f", file, "--wait=false")
}
