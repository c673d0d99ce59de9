package manifest

import (
	"time"

	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/feed"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// groupKinds returns the kinds of other programs that describe groups of pods. They are read in
// every version. A bundle has one list of them all, which the first kind counts and visits.
func groupKinds() []kind {
	var out []kind
	for i, g := range feed.GroupKinds() {
		k := kindOf(g.Group+"/v1", g.Kind, func(b *Bundle) *[]*unstructured.Unstructured { return &b.Groups }, nil, nil, nil)
		k.group, k.read, k.readJSON, k.visit = g.Group, readGroup, nil, visitGroups
		if i > 0 {
			k.count, k.merge, k.visit = func(*Bundle) int { return 0 }, func(_, _ *Bundle) {}, nil
		}
		out = append(out, k)
	}
	return out
}

func readGroup(b *Bundle, n *yaml.Node, r reporter) {
	var fields map[string]any
	if err := n.Decode(&fields); err != nil {
		r.errorf(nil, "the object cannot be read: %v", err)
		return
	}
	o := &unstructured.Unstructured{Object: plain(fields).(map[string]any)}
	r.report(convert.Named(o.GetNamespace(), o.GetName(), o.GetKind()))
	b.Groups = append(b.Groups, o)
	b.setSource(o, r, namePath)
}

func visitGroups(b *Bundle, each func(string, objectEntry)) {
	for i, o := range b.Groups {
		id := groupID[*unstructured.Unstructured](feed.Source(o.GroupVersionKind().GroupKind()))(o)
		each(id, objectEntry{o, o.GetAPIVersion(), o.GetKind(), func(f *Bundle) error { return replace(b, b.Groups, i, f.Groups) }})
	}
}

// plain returns the value with the types that the decoder of JSON gives. Numbers that are whole are
// int64.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
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
