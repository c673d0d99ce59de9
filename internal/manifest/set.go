package manifest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/nearest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// defaultQueue is the queue that exists even if the input has no object for it.
const defaultQueue = "queue/" + cluster.DefaultQueue

// Set changes one field of one object, as in "job/train.spec.priority=10" or
// `job/train.spec.tasks[0].devices.count=4`. The object is decoded and checked again. What
// follows the name of a map, such as labels or quota, is one key, and may have dots:
// queue/q.spec.quota.nvidia.com/gpu=8. Any name may be written in brackets: labels["a.b/c"].
// The value is YAML. Without a value, the field or the entry of a list is removed.
func (b *Bundle) Set(assignment string) error {
	name := "--set " + assignment
	if len(name) > 200 { // the value may be a whole object
		name = strings.ToValidUTF8(name[:200], "") + "…"
	}
	fail := func(format string, args ...any) error {
		return Errors{{File: name, Message: fmt.Sprintf(format, args...)}}
	}
	if b.IsSnapshot() {
		return fail("fields are those of manifests, and a snapshot holds none; change the manifests that it was made from")
	}
	target, value, ok := strings.Cut(assignment, "=")
	object, field := splitTarget(target)
	if !ok || field == "" {
		return fail("write OBJECT.FIELD=VALUE, such as job/train.spec.priority=10; fields begin with metadata, spec or status")
	}
	steps, err := parsePath(field)
	if err != nil {
		return fail("%v", err)
	}
	var v any
	if err := yaml.Unmarshal([]byte(value), &v); err != nil {
		return fail("the value is not YAML: %v", err)
	}
	at := b.object(object)
	if object == defaultQueue && at == nil { // it exists without an object
		b.Queues = append(b.Queues, &v1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: cluster.DefaultQueue}})
		at = b.object(object)
	}
	if at == nil {
		return fail("there is no %s%s", object, nearest.Hint(object, b.objectNames()))
	}
	data, err := json.Marshal(at.object)
	if err != nil {
		return fail("%v", err)
	}
	var tree map[string]any
	if err := json.Unmarshal(data, &tree); err != nil {
		return fail("%v", err)
	}
	tree = prune(tree).(map[string]any)
	tree["apiVersion"], tree["kind"] = at.version, at.kind
	changed, err := assign(tree, steps, v)
	if err != nil {
		return fail("%v", err)
	}
	if data, err = json.Marshal(changed); err != nil {
		return fail("the value cannot be written as JSON: %v", err)
	}
	fresh, errs := parse(name, data)
	for i := range errs {
		errs[i].Line, errs[i].Column = 0, 0 // positions in the JSON that was made here mean nothing to the user
	}
	if err := errs.Err(); err != nil {
		return err
	}
	if err := at.replace(fresh); err != nil {
		return err
	}
	return expander{b}.again(object)
}

// splitTarget separates the name of the object, which may have dots, from the field.
func splitTarget(s string) (object, field string) {
	first := -1
	for _, root := range []string{".metadata", ".spec", ".status"} {
		i := strings.Index(s, root)
		rest := s[min(len(s), i+len(root)):]
		if i > 0 && (rest == "" || rest[0] == '.' || rest[0] == '[') && (first < 0 || i < first) {
			first = i
		}
	}
	if first < 0 {
		return s, ""
	}
	return s[:first], s[first+1:]
}

// mapFields are the names of the fields that are maps from a key, which may have dots, to a
// single value.
var mapFields = []string{
	"labels", "annotations", "nodeSelector", "matchLabels", "resources", "requests", "limits",
	"quota", "overQuotaWeight", "allocatable", "capacity", "artifacts",
}

// isKey reports whether the rest of a path, after the step, is one key of a map.
func isKey(step any, rest string) bool {
	name, _ := step.(string)
	if name == "resources" && (strings.HasPrefix(rest, "requests") || strings.HasPrefix(rest, "limits")) {
		return false // of a container
	}
	return slices.Contains(mapFields, name)
}

// parsePath parses a path such as spec.tasks[0].resources.nvidia.com/gpu.
func parsePath(s string) (path, error) {
	var out path
	for s != "" {
		if len(out) > 0 && s[0] != '[' && isKey(out[len(out)-1], s) {
			return append(out, s), nil
		}
		if s[0] == '[' {
			end := strings.IndexByte(s, ']')
			if strings.HasPrefix(s, `["`) {
				if end = strings.Index(s, `"]`); end >= 0 {
					end++
				}
			}
			if end < 0 {
				return nil, fmt.Errorf("a [ is not closed")
			}
			inside := s[1:end]
			s = strings.TrimPrefix(s[end+1:], ".")
			if n, err := strconv.Atoi(inside); err == nil && n >= 0 {
				out = append(out, n)
			} else if name, err := strconv.Unquote(inside); err == nil {
				out = append(out, name)
			} else {
				return nil, fmt.Errorf("[%s] is neither a number nor a quoted name", inside)
			}
			continue
		}
		i := strings.IndexAny(s, ".[")
		if i < 0 {
			i = len(s)
		}
		if i == 0 {
			return nil, fmt.Errorf("a field name is missing before %q", s)
		}
		out = append(out, s[:i])
		s = strings.TrimPrefix(s[i:], ".")
	}
	return out, nil
}

// assign sets the value at the path and returns the changed tree. If the value is nil, the
// field, or the entry of a list, is removed. Objects on the way that are missing are made. Where
// a list has a single entry, a name is taken for a field of that entry, since such a list may be
// written without brackets.
func assign(tree any, steps path, v any) (any, error) {
	if len(steps) == 0 {
		return v, nil
	}
	switch step := steps[0].(type) {
	case string:
		if list, ok := tree.([]any); ok && len(list) == 1 {
			changed, err := assign(list[0], steps, v)
			return []any{changed}, err
		}
		m, ok := tree.(map[string]any)
		if tree == nil {
			m, ok = map[string]any{}, true
		}
		if !ok {
			return nil, fmt.Errorf("%s: there is no object around it", steps)
		}
		if len(steps) == 1 && v == nil {
			delete(m, step)
			return m, nil
		}
		changed, err := assign(m[step], steps[1:], v)
		m[step] = changed
		return m, err
	case int:
		list, ok := tree.([]any)
		if tree != nil && !ok {
			return nil, fmt.Errorf("%s: there is no list around it", steps)
		}
		if step > len(list) {
			return nil, fmt.Errorf("%s: the list has %d entries", steps, len(list))
		}
		if len(steps) == 1 && v == nil && step < len(list) {
			return slices.Delete(list, step, step+1), nil
		}
		if step == len(list) {
			list = append(list, nil)
		}
		changed, err := assign(list[step], steps[1:], v)
		list[step] = changed
		return list, err
	}
	return tree, nil
}

// alwaysWritten are fields of structs that json.Marshal writes although they are empty. An empty
// object elsewhere, such as a selector, means something else than none.
var alwaysWritten = []string{"metadata", "spec", "status", "resources"}

// prune removes fields that json.Marshal writes although they are empty.
func prune(v any) any {
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			e = prune(e)
			m, isMap := e.(map[string]any)
			if e == nil || isMap && len(m) == 0 && slices.Contains(alwaysWritten, k) {
				delete(x, k)
				continue
			}
			x[k] = e
		}
	case []any:
		for i := range x {
			x[i] = prune(x[i])
		}
	}
	return v
}

// objectEntry is an object of the bundle, and a function that replaces it.
type objectEntry struct {
	object        any
	version, kind string
	replace       func(*Bundle) error
}

func (b *Bundle) objectNames() []string {
	var out []string
	b.visit(func(name string, _ objectEntry) { out = append(out, name) })
	slices.Sort(out)
	return out
}

// Object returns the object with the ID, such as job/train; nil if there is none.
func (b *Bundle) Object(id string) any {
	if e := b.object(id); e != nil {
		return e.object
	}
	return nil
}

func (b *Bundle) object(name string) *objectEntry {
	var found *objectEntry
	b.visit(func(n string, e objectEntry) {
		if n == name && found == nil {
			found = &e
		}
	})
	return found
}

// visit calls each with every object that has an ID.
func (b *Bundle) visit(each func(id string, e objectEntry)) {
	for _, k := range kinds {
		if k.visit != nil {
			k.visit(b, each)
		}
	}
}

// replace replaces an object. Later errors about the new object name the position of the
// old one.
func replace[T comparable](b *Bundle, list []T, i int, fresh []T) error {
	if len(fresh) != 1 {
		return Errors{{Message: "the change makes it another kind of object"}}
	}
	src := b.sources[any(list[i])]
	delete(b.sources, any(list[i]))
	list[i] = fresh[0]
	if src != nil {
		b.remember(fresh[0], src)
	}
	return nil
}
