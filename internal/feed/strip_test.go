package feed

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/berth-project/berth/cluster"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
)

// TestStripKeepsWhatFeedReads delivers the same objects as they are and stripped: the facts
// and the notes are the same.
func TestStripKeepsWhatFeedReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &generator{T: t}
		whole := &fixture{t: t, feed: New(testOptions), state: cluster.NewState()}
		stripped := &fixture{t: t, feed: New(testOptions), state: cluster.NewState()}
		for _, h := range g.cluster() {
			for _, e := range h {
				fatten(e.object)
				before := encode(t, e.object)
				o := Strip(e.object)
				if !bytes.Equal(before, encode(t, e.object)) {
					t.Fatalf("%T %s was modified", e.object, e.object.GetName())
				}
				whole.deliver(e)
				stripped.deliver(event{o.(metav1.Object), e.deleted})
			}
		}
		same(t, stripped.state, whole.state)
		if !reflect.DeepEqual(stripped.notes, whole.notes) {
			t.Fatalf("the notes differ:\n%+v\n%+v", stripped.notes, whole.notes)
		}
	})
}

func encode(t *rapid.T, o any) []byte {
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// fatten adds what real objects have and Strip removes, and a few things that it must keep.
func fatten(o metav1.Object) {
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}})
	switch o := o.(type) {
	case *corev1.Pod:
		o.Annotations[corev1.LastAppliedConfigAnnotation] = "{}"
		always := corev1.ContainerRestartPolicyAlways
		o.Spec.InitContainers = []corev1.Container{{Name: "sidecar", RestartPolicy: &always, Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{"memory": resource.MustParse("1Gi")}}}}
		o.Spec.Overhead = corev1.ResourceList{"cpu": resource.MustParse("10m")}
		c := &o.Spec.Containers[0]
		c.Env = []corev1.EnvVar{{Name: "TOKEN", Value: "secret"}}
		c.Ports = []corev1.ContainerPort{{ContainerPort: 80}, {ContainerPort: 81, HostPort: 81}}
		c.Command = []string{"serve"}
		c.RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers}}
		o.Spec.Volumes = []corev1.Volume{
			{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
			{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
		}
		o.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", ImageID: "sha256:1", AllocatedResources: corev1.ResourceList{"cpu": resource.MustParse("3")},
			Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("3")}}}}
	case *corev1.Node:
		o.Status.Images = []corev1.ContainerImage{{Names: []string{"example.com/model"}, SizeBytes: 1 << 33}}
	case *unstructured.Unstructured:
		o.Object["status"] = map[string]any{"phase": "Running"}
	}
}

func TestStripRemoves(t *testing.T) {
	p := onePod("a", "1", onNode)
	fatten(p)
	o := Strip(p).(*corev1.Pod)
	c := o.Spec.Containers[0]
	if c.Env != nil || c.Command != nil || len(c.Ports) != 1 || len(o.Spec.Volumes) != 1 || o.ManagedFields != nil || o.Annotations[corev1.LastAppliedConfigAnnotation] != "" {
		t.Errorf("%+v", o)
	}
	jobSet := &unstructured.Unstructured{Object: map[string]any{
		"kind": "JobSet", "status": map[string]any{}, "spec": map[string]any{"replicatedJobs": []any{map[string]any{
			"name": "w", "template": map[string]any{"spec": map[string]any{"parallelism": int64(2), "template": map[string]any{"spec": map[string]any{"containers": []any{"x"}}}}}}}}}}
	want := map[string]any{
		"kind": "JobSet", "spec": map[string]any{"replicatedJobs": []any{map[string]any{
			"name": "w", "template": map[string]any{"spec": map[string]any{"parallelism": int64(2), "template": map[string]any{"spec": map[string]any{}}}}}}}}
	if got := Strip(jobSet); !reflect.DeepEqual(got.(*unstructured.Unstructured).Object, want) {
		t.Errorf("%+v", got)
	}
	if jobSet.Object["status"] == nil {
		t.Error("the object was modified")
	}
}
