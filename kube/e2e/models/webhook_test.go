package models

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/sim/scenario"
	"github.com/berth-project/berth/kube/internal/controlplane"
	"github.com/berth-project/berth/kube/internal/modeltest"
	"github.com/berth-project/berth/kube/internal/testcluster"
	"github.com/berth-project/berth/plugins/standard"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

var rotation = flag.Duration("rotation", 40*time.Second, "how long TestRotation sends requests while certificates are renewed")

var randomModels = flag.Int("random-models", 100, "how many random models TestAdmission compares with a simulation")

// webhook is the configuration of the webhook by an address. Its rules are those of the chart.
const webhook = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: berth-models}
webhooks:
- name: models.berth.dev
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: %s
  timeoutSeconds: 3
  clientConfig: {url: "https://%s/validate-models"}
  rules:
  - {apiGroups: [berth.dev], apiVersions: [v1alpha1], resources: [models], operations: [CREATE, UPDATE], scope: Namespaced}
  matchConditions:
  - {name: not-deleted, expression: "!has(object.metadata.deletionTimestamp)"}
`

// freeAddress returns an address at which nothing listens.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// withWebhook starts berth-controller with a webhook, and returns when the webhook answers.
func (w *world) withWebhook(failurePolicy string, flags ...string) (*testcluster.Instance, string) {
	w.Helper()
	address := freeAddress(w.TB)
	w.Apply(fmt.Sprintf(webhook, failurePolicy, address))
	c := w.startController(append([]string{"--webhook-address", address}, flags...)...)
	w.Eventually(func() string {
		// The model is valid, and has a name of its own so that it cannot be confused with others.
		out, err := w.TryKubectl(fmt.Sprintf(smallModel, "probe", 0), "create", "--dry-run=server", "-f", "-")
		if err != nil || strings.Contains(out, "does not know the nodes yet") {
			return out
		}
		c, err := w.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(w.Ctx, "berth-models", metav1.GetOptions{})
		if err != nil || len(c.Webhooks[0].ClientConfig.CABundle) == 0 {
			return fmt.Sprintf("there is no certificate authority yet: %v", err)
		}
		return ""
	})
	return c, address
}

// TestDenied shows what a user sees of a model that no node can ever serve.
func TestDenied(t *testing.T) {
	w := newWorld(t)
	w.addExampleNodes()
	c, address := w.withWebhook("Fail")
	deny := func(replicas int) string {
		out, err := w.TryKubectl(fmt.Sprintf(smallModel, "small", replicas), "create", "-f", "-")
		if err == nil {
			t.Fatalf("%d replicas are allowed: %s", replicas, out)
		}
		return out
	}
	const sentence = "No suitable node group found: insufficient capacity or no matching configurations after filtering."
	w.Eventually(func() string { // the API server may not know the webhook yet
		if out, err := w.TryKubectl(fmt.Sprintf(smallModel, "small", 3), "create", "--dry-run=server", "-f", "-"); err == nil {
			return out
		}
		return ""
	})
	out := deny(3)
	t.Log(out)
	for _, part := range []string{sentence, "NodeGroupSizeFilter removed A10 × 1 (GroupTooSmall: too few nodes, want 3, have 1)", "A100 × 4"} {
		if !strings.Contains(out, part) {
			t.Errorf("the message has no %q", part)
		}
	}
	w.Kubectl(fmt.Sprintf(smallModel, "small", 2), "create", "-f", "-")
	w.Kubectl("", "scale", "model", "small", "--replicas=3") // a raise is never denied
	w.Kubectl("", "patch", "model", "small", "--type=merge", "-p", `{"spec":{"replicas":5}}`)
	if out, err := w.TryKubectl("", "patch", "model", "small", "--type=merge", "-p", `{"spec":{"memory":{"total":"4Ti"}}}`); err == nil || !strings.Contains(out, sentence) {
		t.Errorf("a change that can never be served: %v %s", err, out)
	}
	// An outage concerns models only, and not those that exist.
	c.Kill()
	w.Create(testcluster.Pod("other", 1))
	w.Kubectl("", "create", "configmap", "other")
	w.Kubectl("", "delete", "model", "small", "--wait=false")
	if out, err := w.TryKubectl(fmt.Sprintf(smallModel, "late", 1), "create", "-f", "-"); err == nil {
		t.Errorf("with failurePolicy Fail, a model is allowed without a webhook: %s", out)
	}
	w.startController("--webhook-address", address, "--webhook-mode", "warn")
	w.Eventually(func() string {
		out, err := w.TryKubectl(fmt.Sprintf(smallModel, "many", 4), "create", "--dry-run=server", "-f", "-")
		if err != nil || !strings.Contains(out, "Warning: "+sentence) {
			return fmt.Sprintf("with the mode warn: %v %s", err, out)
		}
		return ""
	})
}

// TestAdmission creates random models: those are denied that a simulation refuses for ever.
func TestAdmission(t *testing.T) {
	w := newWorld(t)
	var nodes []string
	for i, k := range []struct {
		product testcluster.Product
		gpus, n int
	}{{testcluster.H100, 8, 3}, {testcluster.L4, 2, 2}, {a100x40, 4, 2}, {a10, 1, 4}} {
		for j := range k.n {
			name := fmt.Sprintf("node-%d-%d", i, j)
			w.AddNodes(testcluster.Node(name, k.gpus, k.product, func(n *controlplane.Node) {
				n.Labels["pool"] = fmt.Sprint(j % 2)
				if i == 1 {
					n.Labels["berth.dev/cell"] = "edge"
				}
			}))
			nodes = append(nodes, name)
		}
	}
	w.withWebhook("Fail", "--devices-enforced")
	list, err := w.Client.CoreV1().Nodes().List(w.Ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for i := range list.Items {
		n := &list.Items[i]
		n.APIVersion, n.Kind, n.ManagedFields = "v1", "Node", nil
		y, err := yaml.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "%s---\n", y)
	}
	random := rand.New(rand.NewPCG(7, 11))
	counts := map[string]int{}
	for i := range *randomModels {
		m := modeltest.Random(random, fmt.Sprintf("m%d", i), nodes)
		want := permanent(t, text.String(), m)
		err := w.tryCreate(m)
		switch {
		case want == "" && err == nil:
			counts["allowed"]++
		case want != "" && err != nil:
			counts["denied"]++
		default:
			y, _ := yaml.Marshal(m)
			t.Errorf("model %d: a simulation says %q, the webhook %v\n%s", i, want, err, y)
		}
	}
	t.Logf("%d random models: %v", *randomModels, counts)
	if counts["allowed"] < *randomModels/10 || counts["denied"] < *randomModels/10 {
		t.Errorf("too few of one sort: %v", counts)
	}
}

// tryCreate creates the model without storing it.
func (w *world) tryCreate(o *v1alpha1.Model) error {
	w.Helper()
	_, err := w.dynamic.Resource(modelResource).Namespace(namespace).Create(w.Ctx, w.fields(o), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// permanent returns why a simulation refuses the model for ever, or does not read it; "" if it may
// be placed.
func permanent(t testing.TB, nodes string, o *v1alpha1.Model) string {
	t.Helper()
	own := *o
	own.Namespace = ""
	y, err := yaml.Marshal(own)
	if err != nil {
		t.Fatal(err)
	}
	b, err := manifest.Parse("f", []byte(nodes+string(y)))
	if err != nil {
		return err.Error()
	}
	state, err := b.State()
	if err != nil {
		return err.Error()
	}
	e, err := scenario.Engine(standard.Registry(), b)
	if err != nil {
		t.Fatal(err)
	}
	simulation, err := sim.Simulate(e, state, sim.Options{Now: b.Now()})
	if err != nil {
		t.Fatal(err)
	}
	awaited := model.NodesToCreate(model.Provisions(model.NodeRequests(b.Plans()), state))
	for _, r := range simulation.Refusals {
		if r.Permanent && awaited["model/"+o.Name] == 0 {
			return string(r.Reason)
		}
	}
	return ""
}

// TestRotation answers requests while the certificate and its authority are renewed.
func TestRotation(t *testing.T) {
	w := newWorld(t)
	w.addExampleNodes()
	// Two processes share the certificates, which live for a short time.
	flags := []string{"--webhook-check-every", "500ms", "--webhook-certificate-lifetime", "9s", "--webhook-authority-lifetime", "20s", "--webhook-authority-settle", "1s"}
	w.withWebhook("Fail", flags...)
	ctx, stop := context.WithCancel(w.Ctx)
	defer stop()
	var mu sync.Mutex
	var failures []string
	requests := 0
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				m := &v1alpha1.Model{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindModel}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("r%d-%d", i, n)}}
				m.Spec.Source.Preset = "phi-4"
				err := w.tryCreate(m)
				mu.Lock()
				if requests++; err != nil && ctx.Err() == nil {
					failures = append(failures, err.Error())
				}
				mu.Unlock()
			}
		})
	}
	bundle := func() string {
		c, err := w.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(w.Ctx, "berth-models", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return string(c.Webhooks[0].ClientConfig.CABundle)
	}
	first := bundle()
	w.startController(append([]string{"--webhook-address", freeAddress(t)}, flags...)...)
	seen := map[string]bool{first: true}
	until := time.Now().Add(*rotation)
	for time.Now().Before(until) {
		seen[bundle()] = true
		time.Sleep(time.Second)
	}
	stop()
	wg.Wait()
	slices.Sort(failures)
	t.Logf("%d requests, %d failures, %d bundles of authorities", requests, len(failures), len(seen))
	if len(failures) > 0 {
		t.Errorf("requests failed: %s", failures[0])
	}
	if len(seen) < 3 {
		t.Errorf("the authority was renewed %d times", len(seen)-1)
	}
}
