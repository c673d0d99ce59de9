package strict

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
)

// Fields that the type does not have are returned, except in the status, whichever decoder is used.
func TestUnknownFields(t *testing.T) {
	const text = `{"metadata":{"name":"p","lables":{}},"spec":{"containers":[{"name":"a","resourcez":{"status":{"x":1}}},{"Name":"b"}],"later":true},"status":{"later":1,"conditions":[{"later":2}]},"extra":null}`
	var trees, fast []UnknownField
	errs := Documents("f", []byte(text), func(n *yaml.Node) {
		if errs := Decode(n, &corev1.Pod{}, Options{AllowUnknown: true, Unknown: &trees}); len(errs) > 0 {
			t.Error(errs)
		}
	})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	o, ok := ParseJSON([]byte(text))
	if !ok || !o.Decode(&corev1.Pod{}, Options{AllowUnknown: true, Unknown: &fast}) {
		t.Fatal("the text is not decoded")
	}
	var names []string
	for _, f := range trees {
		names = append(names, f.Name)
	}
	if d := cmp.Diff([]string{"lables", "resourcez", "Name", "later", "extra"}, names); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if d := cmp.Diff(trees, fast); d != "" {
		t.Errorf("the decoders differ (-trees +JSON)\n%s", d)
	}
}
