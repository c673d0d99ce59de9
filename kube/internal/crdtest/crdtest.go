// Package crdtest installs the definitions of Queue and Model on an API server for tests.
package crdtest

import (
	"context"
	"testing"
	"time"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/kube/config/crd"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// Resource is the resource of queues, and Models that of models.
var (
	Resource = schema.GroupVersionResource{Group: v1alpha1.Group, Version: v1alpha1.Version, Resource: "queues"}
	Models   = schema.GroupVersionResource{Group: v1alpha1.Group, Version: v1alpha1.Version, Resource: "models"}
)

var definitions = schema.GroupVersionResource{Group: apiextensionsv1.GroupName, Version: "v1", Resource: "customresourcedefinitions"}

// Install creates the definitions and waits until queues and models are served. It fails the
// test if the API server rejects a definition.
func Install(t testing.TB, client dynamic.Interface) {
	t.Helper()
	for _, text := range [][]byte{crd.Queues, crd.Models} {
		install(t, client, string(text))
	}
}

func install(t testing.TB, client dynamic.Interface, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	created, err := client.Resource(definitions).Create(ctx, Object(t, text), metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatal(err)
	}
	for !established(t, created) {
		select {
		case <-ctx.Done():
			t.Fatalf("the definition is not established: %v", created.Object["status"])
		case <-time.After(20 * time.Millisecond):
		}
		if created, err = client.Resource(definitions).Get(ctx, created.GetName(), metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func established(t testing.TB, u *unstructured.Unstructured) bool {
	t.Helper()
	var d apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &d); err != nil {
		t.Fatal(err)
	}
	out := false
	for _, c := range d.Status.Conditions {
		if c.Type == apiextensionsv1.NonStructuralSchema && c.Status == apiextensionsv1.ConditionTrue {
			t.Fatal(c.Message)
		}
		out = out || c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	}
	return out
}

// Object returns a YAML document as an object.
func Object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return u
}

// Queue returns the object as a queue. A field that the Go type does not have fails the
// test.
func Queue(t testing.TB, u *unstructured.Unstructured) *v1alpha1.Queue {
	t.Helper()
	return decode[v1alpha1.Queue](t, u)
}

// Model returns the object as a model. A field that the Go type does not have fails the test.
func Model(t testing.TB, u *unstructured.Unstructured) *v1alpha1.Model {
	t.Helper()
	return decode[v1alpha1.Model](t, u)
}

func decode[T any](t testing.TB, u *unstructured.Unstructured) *T {
	t.Helper()
	data, err := u.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	out := new(T)
	if err := yaml.UnmarshalStrict(data, out); err != nil {
		t.Fatalf("%s\n%v", data, err)
	}
	return out
}
