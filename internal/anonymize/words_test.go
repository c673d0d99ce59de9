package anonymize_test

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/anonymize"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// texts calls visit with each text of the YAML documents and its path. The keys of maps in
// which users choose the keys are texts too.
func texts(t *testing.T, data []byte, visit func(path, text string)) {
	t.Helper()
	d := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc map[string]any
		if err := d.Decode(&doc); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		walk(doc["kind"].(string), doc, visit)
	}
}

func walk(path string, v any, visit func(path, text string)) {
	switch x := v.(type) {
	case string:
		visit(path, x)
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(x)) {
			if ownKeys.MatchString(path) {
				visit(path+" key", k)
			}
			walk(path+"."+k, x[k], visit)
		}
	case []any:
		for _, e := range x {
			walk(path, e, visit)
		}
	}
}

// ownKeys matches the paths of maps in which users choose the keys.
var ownKeys = regexp.MustCompile(`\.(labels|matchLabels|nodeSelector|files|annotations|quota|overQuotaWeight|limits|requests|allocatable|resources|overhead)$`)

// allowed are the words of scenarios that may occur in the output, because they are kept.
var allowed = regexp.MustCompile(`^(|default|chief|evaluator|ps|scheduler|server|worker|runai-gpu-group|kai-resource-reservation|runai-reservation|leader|master|launcher|spot|gpu|sku|cpu|memory|mixed|mps|true|false|[0-9]+)$`)

// checkWords reports names and label values of the input that occur in the output.
func checkWords(t *testing.T, name string, b *manifest.Bundle, output []byte) {
	t.Helper()
	words := map[string]bool{}
	add := func(m *metav1.ObjectMeta) {
		words[m.Name], words[m.Namespace] = true, true
		for k, v := range m.Labels {
			if domain, _, ok := strings.Cut(k, "/"); !ok || domain == "example.com" {
				words[k], words[v] = true, true
			}
		}
	}
	for _, o := range b.Nodes {
		add(&o.ObjectMeta)
	}
	for _, o := range b.CoreNodes {
		add(&o.ObjectMeta)
	}
	for _, o := range b.Queues {
		add(&o.ObjectMeta)
	}
	for _, o := range b.Jobs {
		add(&o.ObjectMeta)
		for _, task := range o.Spec.Tasks {
			words[task.Name] = true
		}
	}
	for _, o := range b.Models {
		add(&o.ObjectMeta)
	}
	for _, o := range b.Pods {
		add(&o.ObjectMeta)
		for _, c := range o.Spec.Containers {
			words[c.Image] = true
		}
	}
	for _, o := range b.Budgets {
		add(&o.ObjectMeta)
	}
	for _, o := range b.CoreBudgets {
		add(&o.ObjectMeta)
	}
	texts(t, output, func(path, text string) {
		if words[text] && !allowed.MatchString(text) {
			t.Errorf("%s: %s of the output is %q, as in the input", name, path, text)
		}
	})
}

// secret is the text of all fields in TestFields. It is a valid duration in no field.
const secret = "acme-secret"

// fill sets all texts of a value to the secret, and makes one element of each list and map.
func fill(v reflect.Value, depth int) {
	if depth > 14 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(secret)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth+1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth+1)
		fill(value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() && v.Type() != reflect.TypeFor[metav1.Time]() {
				fill(f, depth+1)
			}
		}
	}
}

func filled[T any]() []*T {
	out := new(T)
	fill(reflect.ValueOf(out).Elem(), 0)
	return []*T{out}
}

// TestFields checks which fields are copied as they are. All of them have words of
// Kubernetes, of Berth or of manufacturers.
func TestFields(t *testing.T) {
	b := &manifest.Bundle{
		Nodes: filled[v1alpha1.Node](), Queues: filled[v1alpha1.Queue](), Jobs: filled[v1alpha1.Job](), Models: filled[v1alpha1.Model](),
		CoreNodes: filled[corev1.Node](), Pods: filled[corev1.Pod](), Budgets: filled[v1alpha1.DisruptionBudget](), CoreBudgets: filled[policyv1.PodDisruptionBudget](),
	}
	b.Models[0].Spec.Adapters[0].Path = ""
	b.Models[0].Spec.Source.Preset, b.Models[0].Spec.Draft.Preset = "llama-3.1-8b", "llama-3.2-1b"
	c, err := anonymize.Of(b, 0)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := c.Write(&text); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	texts(t, text.Bytes(), func(path, text string) {
		if strings.Contains(text, secret) {
			found[path] = true
		}
	})
	if d := cmp.Diff(strings.Fields(copiedFields), slices.Sorted(maps.Keys(found))); d != "" {
		t.Errorf("fields that are copied (-want +have):\n%s", d)
	}
}

// copiedFields are the paths of the fields, sorted.
const copiedFields = `
DisruptionBudget.spec.maxUnavailable
DisruptionBudget.spec.minAvailable
DisruptionBudget.spec.selector.matchExpressions.operator
Job.spec.affinity.jobs.selector.matchExpressions.operator
Job.spec.affinity.preferred.matchExpressions.operator
Job.spec.affinity.required.matchExpressions.operator
Job.spec.alternatives.placement.instanceType
Job.spec.alternatives.placement.unit
Job.spec.alternatives.tasks.affinity.preferred.matchExpressions.operator
Job.spec.alternatives.tasks.affinity.required.matchExpressions.operator
Job.spec.alternatives.tasks.devices.partition
Job.spec.alternatives.tasks.devices.products
Job.spec.alternatives.tasks.isolation.cpu
Job.spec.alternatives.tasks.isolation.gpu
Job.spec.isolation.cpu
Job.spec.isolation.gpu
Job.spec.placement.instanceType
Job.spec.placement.unit
Job.spec.tasks.affinity.preferred.matchExpressions.operator
Job.spec.tasks.affinity.required.matchExpressions.operator
Job.spec.tasks.devices.partition
Job.spec.tasks.devices.products
Job.spec.tasks.isolation.cpu
Job.spec.tasks.isolation.gpu
Job.spec.tolerations.effect
Job.spec.tolerations.operator
Job.status.placements.state
Model.spec.backend
Model.spec.backendVersion
Model.spec.dtype
Model.spec.isolation.cpu
Model.spec.isolation.gpu
Model.spec.placement.instanceType
Model.spec.placement.partition
Model.spec.placement.strategy
Model.spec.placement.unit
Model.spec.quantization
Model.spec.tolerations.effect
Model.spec.tolerations.operator
Model.status.group.product
Model.status.group.sharing.strategy
Model.status.replicas.form
Model.status.replicas.placements.state
Model.status.replicas.placements.task
Model.status.replicas.state
Node.spec.devices.partitions.profile
Node.spec.devices.product
Node.spec.devices.sharing.strategy
Node.spec.devices.type
Node.spec.isolation.cpu
Node.spec.isolation.gpu
Node.spec.isolation.shareMode
Node.spec.taints.effect
Pod.spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution.preference.matchExpressions.operator
Pod.spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution.preference.matchFields.operator
Pod.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.matchExpressions.operator
Pod.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.matchFields.operator
Pod.spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution.podAffinityTerm.labelSelector.matchExpressions.operator
Pod.spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution.podAffinityTerm.namespaceSelector.matchExpressions.operator
Pod.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution.labelSelector.matchExpressions.operator
Pod.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution.namespaceSelector.matchExpressions.operator
Pod.spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution.podAffinityTerm.labelSelector.matchExpressions.operator
Pod.spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution.podAffinityTerm.namespaceSelector.matchExpressions.operator
Pod.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution.labelSelector.matchExpressions.operator
Pod.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution.namespaceSelector.matchExpressions.operator
Pod.spec.containers.restartPolicy
Pod.spec.initContainers.restartPolicy
Pod.status.phase
PodDisruptionBudget.spec.maxUnavailable
PodDisruptionBudget.spec.minAvailable
PodDisruptionBudget.spec.selector.matchExpressions.operator
Queue.spec.tier
`
