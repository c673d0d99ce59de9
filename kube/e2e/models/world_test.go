// Package models has tests of berth-controller and berth-scheduler together on a real API server.
package models

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/kube/command"
	"github.com/berth-project/berth/kube/internal/controlplane"
	"github.com/berth-project/berth/kube/internal/testcluster"
	"github.com/berth-project/berth/plugins/standard"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

func TestMain(m *testing.M) {
	registry := standard.Registry()
	testcluster.Main(m,
		func() int { return command.Main(registry, os.Args[1:], os.Stderr) },
		func() int { return command.Controller(registry, os.Args[1:], os.Stderr) })
}

const namespace = testcluster.Namespace

var modelResource = schema.GroupVersionResource{Group: v1alpha1.Group, Version: v1alpha1.Version, Resource: "models"}

// world is a cluster with the definitions of Berth.
type world struct {
	*testcluster.Cluster
	dynamic               dynamic.Interface
	scheduler, controller string // kubeconfigs with the permissions that the chart grants
}

func newWorld(t testing.TB) *world {
	t.Helper()
	o := controlplane.Options{Components: []controlplane.Component{controlplane.ControllerManager, controlplane.LWS}}
	w := &world{Cluster: testcluster.NewRecorded(t, o, controllerUser, schedulerUser)}
	var err error
	if w.dynamic, err = dynamic.NewForConfig(w.CP.Config()); err != nil {
		t.Fatal(err)
	}
	w.Install("../../config/crd/queues.berth.dev.yaml")
	w.Install("../../config/crd/models.berth.dev.yaml")
	w.Apply(chartDocuments(t, "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"))
	w.scheduler, w.controller = w.ActAs(schedulerUser), w.ActAs(controllerUser)
	return w
}

// startScheduler and startController start the programs with the permissions and in the namespace
// of the chart.
func (w *world) startScheduler(flags ...string) *testcluster.Instance {
	w.Helper()
	return w.Scheduler(w.scheduler, append([]string{"--leader-elect-namespace", systemNamespace}, flags...)...)
}

func (w *world) startController(flags ...string) *testcluster.Instance {
	w.Helper()
	return w.Controller(w.controller, append([]string{"--leader-elect-namespace", systemNamespace, "--webhook-secret", systemNamespace + "/berth-webhook"}, flags...)...)
}

const systemNamespace = "berth-system"

// start starts berth-scheduler and berth-controller without a webhook.
func (w *world) start(flags ...string) (scheduler, controller *testcluster.Instance) {
	w.Helper()
	return w.startScheduler(flags...), w.startController(append([]string{"--webhook-mode", "off"}, flags...)...)
}

// model returns a model as it is on the API server.
func (w *world) model(name string) *v1alpha1.Model {
	w.Helper()
	u, err := w.dynamic.Resource(modelResource).Namespace(namespace).Get(w.Ctx, name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	text, err := json.Marshal(u.Object)
	if err != nil {
		w.Fatal(err)
	}
	m := &v1alpha1.Model{}
	if err := json.Unmarshal(text, m); err != nil {
		w.Fatal(err)
	}
	return m
}

// condition returns a condition of a model as a text.
func condition(m *v1alpha1.Model, kind string) string {
	for _, c := range m.Status.Conditions {
		if c.Type == kind {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	return "no condition " + kind
}

// podsOf returns the pods of a model that are not being deleted, sorted by name.
func (w *world) podsOf(name string) []*corev1.Pod {
	w.Helper()
	var out []*corev1.Pod
	for _, p := range w.Pods() {
		if p.Labels["berth.dev/model"] == name && p.DeletionTimestamp == nil {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// nodesOf returns the nodes of the pods of a model, sorted; a pod without a node has "".
func (w *world) nodesOf(name string) []string {
	w.Helper()
	var out []string
	for _, p := range w.podsOf(name) {
		out = append(out, p.Spec.NodeName)
	}
	slices.Sort(out)
	return out
}
