package manifest

import (
	"fmt"
	"slices"
	"time"

	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/feed"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// groupKinds returns the kinds of other programs that describe groups of pods, and other kinds of
// which controllers make pods. They are read in every version. A bundle has one list for each of the
// two, which the first kind of the list counts and visits.
func groupKinds() []kind {
	return slices.Concat(
		untypedKinds(feed.GroupKinds(), func(b *Bundle) *[]*unstructured.Unstructured { return &b.Groups }),
		untypedKinds(workloadKinds, func(b *Bundle) *[]*unstructured.Unstructured { return &b.Workloads }),
	)
}

func untypedKinds(of []schema.GroupKind, list func(*Bundle) *[]*unstructured.Unstructured) []kind {
	var out []kind
	for i, g := range of {
		k := kindOf(g.Group+"/v1", g.Kind, list, nil, nil, nil)
		k.group, k.readJSON, k.minor = g.Group, nil, true
		k.read = func(b *Bundle, n *yaml.Node, r reporter) { readUntyped(b, n, r, list(b)) }
		if k.visit = visitUntyped(list); i > 0 {
			k.count, k.merge, k.visit = func(*Bundle) int { return 0 }, func(_, _ *Bundle) {}, nil
		}
		out = append(out, k)
	}
	return out
}

func readUntyped(b *Bundle, n *yaml.Node, r reporter, list *[]*unstructured.Unstructured) {
	var fields map[string]any
	if err := n.Decode(&fields); err != nil {
		r.errorf(nil, "the object cannot be read: %v", err)
		return
	}
	o := &unstructured.Unstructured{Object: plain(fields).(map[string]any)}
	r.report(convert.Named(o.GetNamespace(), o.GetName(), o.GetKind()))
	*list = append(*list, o)
	b.setSource(o, r, namePath)
}

func visitUntyped(list func(*Bundle) *[]*unstructured.Unstructured) func(*Bundle, func(string, objectEntry)) {
	return func(b *Bundle, each func(string, objectEntry)) {
		for i, o := range *list(b) {
			id := groupID[*unstructured.Unstructured](workloadSource(o.GroupVersionKind().GroupKind()))(o)
			each(id, objectEntry{o, o.GetAPIVersion(), o.GetKind(), func(f *Bundle) error { return replace(b, *list(b), i, *list(f)) }})
		}
	}
}

// plain returns the value with the types that the decoder of JSON gives. Numbers that are whole are
// int64, and keys that are no texts become texts.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
	case map[any]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[fmt.Sprint(k)] = plain(v[k])
		}
		return out
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case int:
		return int64(v)
	case uint64:
		return float64(v)
	case time.Time:
		return v.UTC().Format(time.RFC3339)
	}
	return v
}
