package manifest

import (
	"bytes"
	"encoding/json"
	"io"

	"go.yaml.in/yaml/v3"
)

// WriteObjects writes API objects as documents of one YAML file.
func WriteObjects[T any](w io.Writer, objects []T) error {
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	for _, o := range objects {
		tree, err := treeOf(o)
		if err != nil {
			return err
		}
		if err := e.Encode(tree); err != nil {
			return err
		}
	}
	return e.Close()
}

// treeOf returns the object as it is written in JSON, without fields that are not set.
func treeOf(object any) (any, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return nil, err
	}
	return withoutUnset(tree), nil
}

// emptyFields are fields that json.Marshal writes although they are not set. An empty object
// elsewhere, such as a selector, means something else than none.
var emptyFields = []string{"metadata", "spec", "status", "resources", "source", "placement"}

// withoutUnset removes fields that are not set, and returns the value with numbers of Go.
func withoutUnset(v any) any {
	switch x := v.(type) {
	case json.Number:
		if n, err := x.Int64(); err == nil {
			return n
		}
		n, _ := x.Float64() // it was a number of Go
		return n
	case map[string]any:
		for k, e := range x {
			if e == nil {
				delete(x, k)
				continue
			}
			x[k] = withoutUnset(e)
		}
		for _, k := range emptyFields {
			if m, ok := x[k].(map[string]any); ok && len(m) == 0 {
				delete(x, k)
			}
		}
	case []any:
		for i := range x {
			x[i] = withoutUnset(x[i])
		}
	}
	return v
}
