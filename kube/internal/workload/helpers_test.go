package workload

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/estimate/library"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/model"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// testNodes are the nodes of the tests: four with 8 devices of 80 GiB, and two with 2 of 24 GiB.
var testNodes = func() string {
	var b strings.Builder
	for i, devices := range []string{"NVIDIA-H100-80GB-HBM3, count: 8, memory: 80Gi", "NVIDIA-H100-80GB-HBM3, count: 8, memory: 80Gi", "NVIDIA-H100-80GB-HBM3, count: 8, memory: 80Gi", "NVIDIA-H100-80GB-HBM3, count: 8, memory: 80Gi", "NVIDIA-L4, count: 2, memory: 24Gi", "NVIDIA-L4, count: 2, memory: 24Gi"} {
		b.WriteString("---\napiVersion: berth.dev/v1alpha1\nkind: Node\nmetadata: {name: n" + string(rune('0'+i)) + ", labels: {pool: gpu}}\nspec:\n  resources: {cpu: 64, memory: 1Ti}\n  devices: {product: " + devices + "}\n")
	}
	return b.String()
}()

// groupsOf returns the node groups of the nodes in the manifests.
func groupsOf(t testing.TB, manifests string) []*cluster.Group {
	t.Helper()
	b, err := manifest.LoadFrom(strings.NewReader(manifests), []string{"-"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.State()
	if err != nil {
		t.Fatal(err)
	}
	return s.View().Groups()
}

// modelOf returns the model with this spec, which is named chat.
func modelOf(t testing.TB, spec string) *v1alpha1.Model {
	t.Helper()
	return parseModel(t, "apiVersion: berth.dev/v1alpha1\nkind: Model\nmetadata: {name: chat, namespace: ai, uid: 7b1c}\nspec:\n  "+strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  "))
}

func parseModel(t testing.TB, text string) *v1alpha1.Model {
	t.Helper()
	o := &v1alpha1.Model{}
	if err := yaml.UnmarshalStrict([]byte(text), o); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return o
}

// replicasOf returns the replicas of the model in the first form that can be placed and for which
// wanted returns true.
func replicasOf(t testing.TB, o *v1alpha1.Model, groups []*cluster.Group, whole bool, wanted func(*cluster.Alternative) bool) *Replicas {
	t.Helper()
	s, notes := convert.Model(o, &convert.Environment{})
	for _, n := range notes {
		if n.Severity == convert.Invalid {
			t.Fatalf("%s: %s: %s", o.Name, n.Path, n.Message)
		}
	}
	if name := o.Spec.Source.Preset; name != "" {
		s.Source, _ = library.Known(name)
	}
	if s.Place.WholeNodes {
		s.Group, s.NodesPerReplica = &groups[0].Key, 1
	}
	fleet := model.NewFleet(groups)
	fleet.WholeDevices = whole
	result, err := fleet.Convert(s)
	if err != nil {
		t.Fatalf("%s: %v", o.Name, err)
	}
	alternatives := result.Jobs[0].Alternatives
	for i := range alternatives {
		alt := &alternatives[i]
		if !Expressible(alt) || !wanted(alt) {
			continue
		}
		r := &Replicas{Model: o, Spec: s, Context: result.Context(), Form: result.FormOf(alt), Alternative: alt, Resource: "nvidia.com/gpu"}
		if alt.Tasks[0].Shape.Need.None() {
			r.Resource = ""
		}
		if alt.Whole != nil {
			g := groups[0]
			r.Devices, r.Selector = g.Key.Count, map[string]string{"nvidia.com/gpu.product": g.Key.Product}
		}
		return r
	}
	t.Fatalf("%s has no such form", o.Name)
	return nil
}

func anyForm(*cluster.Alternative) bool         { return true }
func onSeveralPods(a *cluster.Alternative) bool { return len(a.Tasks) > 1 }

var options = Options{SchedulerName: "berth-scheduler"}

// objectOf returns the object that runs the replicas.
func objectOf(t testing.TB, o Options, r *Replicas) (runtime.Object, error) {
	t.Helper()
	if r.OnSeveralNodes() {
		return o.LeaderWorkerSet(r, ReplicaName(r.Model.Name, 0))
	}
	return o.Deployment(r, 2)
}

// templateOf returns the template of the leader or the only pod, and that of the workers, if the
// object has any.
func templatesOf(t testing.TB, o runtime.Object) []*corev1.PodTemplateSpec {
	t.Helper()
	switch o := o.(type) {
	case *appsv1.Deployment:
		return []*corev1.PodTemplateSpec{&o.Spec.Template}
	case *unstructured.Unstructured:
		var out []*corev1.PodTemplateSpec
		for _, name := range []string{"leaderTemplate", "workerTemplate"} {
			value, _, err := unstructured.NestedMap(o.Object, "spec", "leaderWorkerTemplate", name)
			if err != nil {
				t.Fatal(err)
			}
			template := &corev1.PodTemplateSpec{}
			text, err := json.Marshal(value)
			if err == nil {
				err = json.Unmarshal(text, template)
			}
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, template)
		}
		return out
	}
	t.Fatalf("%T", o)
	return nil
}
