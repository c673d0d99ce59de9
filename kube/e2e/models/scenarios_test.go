package models

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/sim/scenario"
	"github.com/berth-project/berth/kube/internal/controlplane"
	"github.com/berth-project/berth/kube/internal/testcluster"
	"github.com/berth-project/berth/plugins/standard"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var (
	everyScenario = flag.Bool("every-scenario", false, "run all scenarios that can be run, and not every eighth")
	onlyScenario  = flag.String("scenario", "", "run only scenarios whose path has this text")
)

// place is where a pod is, or should be.
type place struct {
	Model, Node string
	Devices     string // the numbers of its devices
}

func (p place) String() string { return p.Model + " on " + p.Node + " " + p.Devices }

// oneScenario is a scenario that has nothing but nodes and models.
type oneScenario struct {
	path   string
	nodes  []controlplane.Node
	models []*v1alpha1.Model
	want   []place // sorted
}

// TestScenarios runs scenarios of models on an API server: berth-controller and berth-scheduler
// choose the same nodes and devices as a simulation.
func TestScenarios(t *testing.T) {
	list, left := readScenarios(t)
	t.Logf("%d scenarios can be run; %v", len(list), left)
	if len(list) < 100 {
		t.Errorf("only %d scenarios can be run", len(list))
	}
	w := newWorld(t)
	flags := []string{"--devices-enforced", "--leader-elect=false"}
	ran := 0
	for i, c := range list {
		if *onlyScenario != "" && !strings.Contains(c.path, *onlyScenario) || *onlyScenario == "" && !*everyScenario && i%8 != 0 {
			continue
		}
		ran++
		t.Run(c.path, func(t *testing.T) {
			outer := w.TB
			w.TB = t
			defer func() { w.TB = outer }()
			w.runScenario(c, flags)
		})
	}
	t.Logf("%d scenarios were run", ran)
}

// readScenarios returns the scenarios that can be run, and how many cannot, by reason.
func readScenarios(t *testing.T) ([]oneScenario, map[string]int) {
	t.Helper()
	left := map[string]int{}
	var out []oneScenario
	files, err := scenario.Files([]string{"../../../scenarios/models", "../../../scenarios/whole-nodes"})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := manifest.Load([]string{file})
		if err != nil {
			t.Fatal(err)
		}
		c, why := newScenario(t, file, b)
		if why != "" {
			left[why]++
			continue
		}
		out = append(out, *c)
	}
	return out, left
}

// newScenario returns the scenario, or why it cannot be run.
func newScenario(t *testing.T, file string, b *manifest.Bundle) (*oneScenario, string) {
	t.Helper()
	path, _ := filepath.Rel("../../../scenarios", file)
	c := &oneScenario{path: path, models: b.Models}
	if b.Scenario() == nil || len(b.Models) == 0 || len(b.Nodes) == 0 {
		return nil, "no models or no nodes"
	}
	if len(b.Jobs)+len(b.Queues)+len(b.Pods)+len(b.Budgets) > 0 || b.Configuration() != nil || b.Scenario().Cycles != nil {
		return nil, "other objects"
	}
	for _, m := range b.Models {
		s := &m.Spec
		switch {
		case len(m.Status.Replicas) > 0 || m.Status.Group != nil:
			return nil, "replicas that run"
		case s.Source.LocalPath != "":
			return nil, "files on nodes"
		case m.Namespace != "" || m.CreationTimestamp.Time != (time.Time{}):
			return nil, "namespaces or times"
		}
	}
	for _, n := range b.Nodes {
		node, why := kubernetesNode(n)
		if why != "" {
			return nil, why
		}
		c.nodes = append(c.nodes, node)
	}
	c.want = simulate(t, b)
	for _, m := range c.models {
		inDirectory(file, &m.Spec)
	}
	return c, ""
}

// modelsDirectory is the directory of models of berth-controller.
const modelsDirectory = "../../../scenarios"

// inDirectory writes the paths of the model, which are relative to its file, relative to the
// directory of models.
func inDirectory(file string, s *v1alpha1.ModelSpec) {
	from := func(path *string) {
		if *path != "" {
			*path, _ = filepath.Rel(modelsDirectory, filepath.Join(filepath.Dir(file), *path))
		}
	}
	from(&s.Source.GGUF)
	from(&s.Source.HuggingFace)
	if s.Draft != nil {
		from(&s.Draft.GGUF)
		from(&s.Draft.HuggingFace)
	}
	for i := range s.Adapters {
		from(&s.Adapters[i].Path)
	}
	// Placement is compared, and not whether a version of a server can be started so.
	s.Server = &v1alpha1.ModelServer{Image: "image", Command: []string{"serve"}}
}

// kubernetesNode returns the node as GPU Feature Discovery labels it, or why that is not possible.
func kubernetesNode(o *v1alpha1.Node) (controlplane.Node, string) {
	n := controlplane.Node{Name: o.Name, Labels: maps.Clone(o.Labels), Annotations: map[string]string{}, Allocatable: maps.Clone(o.Spec.Resources)}
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	if n.Allocatable == nil {
		n.Allocatable = corev1.ResourceList{}
	}
	s := &o.Spec
	switch {
	case len(o.Status.Files) > 0 || len(o.Status.FreeMemory) > 0 || o.Status.State != "" && o.Status.State != "READY":
		return n, "a status of nodes"
	case s.UnifiedMemory || s.DeviceResource != "" || s.Unschedulable || len(s.Devices) > 1 || len(o.OwnerReferences) > 0:
		return n, "devices without labels"
	}
	for _, d := range s.Devices {
		memory := d.Memory.Value()
		switch {
		case d.Reserved != nil || d.Type != "" && d.Type != "cuda" || len(d.UUIDs)+len(d.NUMA)+len(d.Links)+len(d.Partitions)+len(d.Lost) > 0 || d.Link != "" || d.Sharing != nil:
			return n, "devices without labels"
		case memory%(1<<20) != 0:
			return n, "memory that is no multiple of 1 MiB"
		}
		n.Labels[cluster.LabelProduct], n.Labels[cluster.LabelCount], n.Labels[cluster.LabelMemory] = d.Product, fmt.Sprint(d.Count), fmt.Sprint(memory>>20)
		n.Allocatable[testcluster.GPU] = *resource.NewQuantity(int64(d.Count), resource.DecimalSI)
	}
	if s.Cell != "" {
		n.Labels[v1alpha1.LabelCell] = s.Cell
	}
	if s.Isolation != nil {
		text, err := json.Marshal(s.Isolation)
		if err != nil {
			return n, err.Error()
		}
		n.Annotations[v1alpha1.AnnotationIsolation] = string(text)
	}
	for _, t := range s.Taints {
		n.Taints = append(n.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	return n, ""
}

// simulate returns where a simulation places the tasks of the models.
func simulate(t testing.TB, b *manifest.Bundle) []place {
	t.Helper()
	e, err := scenario.Engine(standard.Registry(), b)
	if err != nil {
		t.Fatal(err)
	}
	state, err := b.State()
	if err != nil {
		t.Fatal(err)
	}
	simulation, err := sim.Simulate(e, state, sim.Options{Now: b.Now(), Brief: true})
	if err != nil {
		t.Fatal(err)
	}
	var out []place
	for i := range simulation.Decisions {
		d := &simulation.Decisions[i]
		if d.Action != engine.Bind {
			continue
		}
		var devices []string
		for _, c := range d.Claims {
			devices = append(devices, fmt.Sprint(state.Node(d.Node).Devices[c.Device].ID.Index))
		}
		slices.Sort(devices)
		model := strings.TrimPrefix(d.Task.Job, "model/")
		out = append(out, place{model[:strings.LastIndex(model, "-")], d.Node, strings.Join(devices, ",")})
	}
	sortPlaces(out)
	return out
}

func sortPlaces(list []place) {
	slices.SortFunc(list, func(a, b place) int { return strings.Compare(a.String(), b.String()) })
}

// runScenario creates the nodes and models, compares, and removes all.
func (w *world) runScenario(c oneScenario, flags []string) {
	w.Helper()
	w.AddNodes(c.nodes...)
	defer w.clear(c)
	models := slices.Clone(c.models)
	slices.SortFunc(models, func(a, b *v1alpha1.Model) int { return strings.Compare(a.Name, b.Name) })
	for i, m := range models {
		if i > 0 { // jobs are ordered by the second of their creation, and a simulation orders these by name
			time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second + 10*time.Millisecond)))
		}
		w.createModel(m)
	}
	// The controller starts when it can know all nodes and models, and the scheduler when all pods
	// exist, as a simulation knows them: a node group is chosen once, among the nodes that are known.
	defer w.startController(append([]string{"--webhook-mode", "off", "--models-directory", modelsDirectory}, flags...)...).Kill()
	w.Eventually(func() string {
		if text := w.decided(models); text != "" {
			return text + "\n" + w.state()
		}
		return ""
	})
	defer w.startScheduler(flags...).Kill()
	w.Eventually(func() string {
		diff := cmp.Diff(c.want, w.places())
		if diff != "" {
			diff += w.state()
		}
		return diff
	})
}

// state describes the models and pods, for messages.
func (w *world) state() string {
	w.Helper()
	out := w.Kubectl("", "get", "models", "-o", "jsonpath={range .items[*]}{.metadata.name}: {.status.conditions[*].message}{\"\\n\"}{.status.workloads}{\"\\n\"}{end}")
	for _, p := range w.Pods() {
		out += fmt.Sprintf("%s on %q: %s; %s\n", p.Name, p.Spec.NodeName, testcluster.ConditionText(p), p.Annotations[feed.AnnotationModelTask])
	}
	return out
}

// decided returns "" if the controller has made the objects of all models, and their pods exist.
func (w *world) decided(models []*v1alpha1.Model) string {
	for _, o := range models {
		m := w.model(o.Name)
		if m.Status.ObservedGeneration != m.Generation {
			return o.Name + " has no status yet"
		}
		want := 0
		for _, x := range m.Status.Workloads {
			want += int(x.Replicas)
		}
		have := 0
		for _, p := range w.podsOf(o.Name) {
			if p.Labels["leaderworkerset.sigs.k8s.io/worker-index"] == "" || p.Labels["leaderworkerset.sigs.k8s.io/worker-index"] == "0" {
				have++
			}
		}
		if have != want {
			return fmt.Sprintf("%s has %d replicas of %d: %s", o.Name, have, want, condition(m, "Placed"))
		}
	}
	return ""
}

// fields returns the model as it is created.
func (w *world) fields(o *v1alpha1.Model) *unstructured.Unstructured {
	w.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		w.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &u.Object); err != nil {
		w.Fatal(err)
	}
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	return u
}

// createModel creates the model in the namespace of the tests.
func (w *world) createModel(o *v1alpha1.Model) {
	w.Helper()
	own := *o
	own.APIVersion, own.Kind, own.Namespace = v1alpha1.APIVersion, v1alpha1.KindModel, namespace
	u := w.fields(&own)
	// The sources of scenarios need no repository, and without one there is nothing to serve.
	if s := &own.Spec; s.Source.Preset == "" && s.Source.Repository == "" {
		if err := unstructured.SetNestedField(u.Object, "example/model", "spec", "source", "repository"); err != nil {
			w.Fatal(err)
		}
	}
	if d := own.Spec.Draft; d != nil && d.Preset == "" && d.Repository == "" {
		if err := unstructured.SetNestedField(u.Object, "example/draft", "spec", "draft", "repository"); err != nil {
			w.Fatal(err)
		}
	}
	if _, err := w.dynamic.Resource(modelResource).Namespace(namespace).Create(w.Ctx, u, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// places returns where the pods of models are.
func (w *world) places() []place {
	w.Helper()
	var out []place
	for _, p := range w.Pods() {
		if p.DeletionTimestamp != nil || p.Spec.NodeName == "" {
			continue
		}
		numbers := []string{}
		if text := p.Annotations[feed.AnnotationVisibleDevices]; text != "" {
			numbers = strings.Split(text, ",")
		}
		slices.Sort(numbers)
		out = append(out, place{p.Labels[feed.LabelModel], p.Spec.NodeName, strings.Join(numbers, ",")})
	}
	sortPlaces(out)
	return out
}

// clear removes the models and nodes of a scenario.
func (w *world) clear(c oneScenario) {
	w.Helper()
	if err := w.dynamic.Resource(modelResource).Namespace(namespace).DeleteCollection(w.Ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		w.Fatal(err)
	}
	w.Eventually(func() string {
		return w.Kubectl("", "get", "deployments,leaderworkersets", "-o", "name")
	})
	w.DeletePods()
	if err := w.Client.CoreV1().Nodes().DeleteCollection(w.Ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		w.Fatal(err)
	}
}
