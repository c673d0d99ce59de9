package objectfile

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestSecrets checks that what may be secret is not written.
func TestSecrets(t *testing.T) {
	meta := metav1.ObjectMeta{
		Name: "x", Labels: map[string]string{"parameters": "a label"},
		Annotations: map[string]string{
			"example.com/token": "secret", corev1.LastAppliedConfigAnnotation: "secret", "berth.dev/queue": "kept",
		},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "secret"}},
	}
	for name, o := range map[string]runtime.Object{
		"a volume": &corev1.PersistentVolume{ObjectMeta: meta, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
			CSI: &corev1.CSIPersistentVolumeSource{Driver: "kept", VolumeAttributes: map[string]string{"password": "secret"}},
		}}},
		"a volume with options": &corev1.PersistentVolume{ObjectMeta: meta, Spec: corev1.PersistentVolumeSpec{
			StorageClassName: "kept", MountOptions: []string{"password=secret"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{FlexVolume: &corev1.FlexPersistentVolumeSource{Driver: "d", Options: map[string]string{"password": "secret"}}},
		}},
		"a volume of a pod": &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{SchedulerName: "kept", Volumes: []corev1.Volume{
			{Name: "a", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d", VolumeAttributes: map[string]string{"password": "secret"}}}},
			{Name: "b", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"token": "secret"}},
			}}}},
		}}},
		"a class": &storagev1.StorageClass{ObjectMeta: meta, Provisioner: "kept", Parameters: map[string]string{"password": "secret"}},
		"a claim": &resourcev1.ResourceClaim{ObjectMeta: meta, Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Config: []resourcev1.DeviceClaimConfiguration{{
			Requests:            []string{"kept"},
			DeviceConfiguration: resourcev1.DeviceConfiguration{Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: "d", Parameters: runtime.RawExtension{Raw: []byte(`{"a":"secret"}`)}}},
		}}}}},
	} {
		fields, err := Encode(o)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "secret") || strings.Count(string(text), "kept") != 2 || !strings.Contains(string(text), "a label") {
			t.Errorf("%s is written as %s", name, text)
		}
	}
}

// TestRoundTrip checks that an object is read as it was written.
func TestRoundTrip(t *testing.T) {
	want := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"a": "b"}}, Spec: corev1.NodeSpec{Unschedulable: true}}
	fields, err := Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(fields)
	if err != nil {
		t.Fatal(err)
	}
	want.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for name, fields := range map[string]map[string]any{"no name": {"apiVersion": "v1", "kind": "Node"}, "no kind": {"metadata": map[string]any{"name": "a"}}} {
		if _, err := Decode(fields); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestKeptAnnotations checks which annotations are written.
func TestKeptAnnotations(t *testing.T) {
	for key, want := range map[string]bool{
		"berth.dev/queue": true, "batch.kubernetes.io/job-completion-index": true, "scheduling.k8s.io/group-name": true, "gpu-fraction": true, "pod-group-name": true,
		"notberth.dev/token": false, "k8s.io.example.com/token": false, "example.com/berth.dev/token": false, "my-pod-group-name": false, "token": false, "": false, "/": false,
		corev1.LastAppliedConfigAnnotation: false,
	} {
		if got := isKept(key); got != want {
			t.Errorf("annotation %q is kept: %t, want %t", key, got, want)
		}
	}
}
