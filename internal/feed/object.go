package feed

import (
	"fmt"

	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/field"
	"github.com/berth-project/berth/internal/phrase"
)

// object reads fields of an object whose type is not part of Kubernetes. It notes fields
// that have another type than expected.
type object struct {
	fields map[string]any
	notes  *convert.Notes
}

// value returns the value at the path, and nil if there is none.
func (x *object) value(path ...string) any {
	var v any = x.fields
	for _, step := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[step]
	}
	return v
}

// text returns the text at the path, and "" if there is none.
func (x *object) text(path ...string) string {
	v := x.value(path...)
	s, ok := v.(string)
	if !ok && v != nil {
		x.invalid(path, "want a text, have %v", v)
	}
	return s
}

// number returns the whole number at the path, and the default if there is none.
func (x *object) number(otherwise int64, path ...string) int64 {
	switch v := x.value(path...).(type) {
	case nil:
		return otherwise
	case int64:
		return v
	case int:
		return int64(v)
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	x.invalid(path, "want a whole number, have %s", phrase.Quote(fmt.Sprint(x.value(path...))))
	return otherwise
}

// objects returns the list of objects at the path.
func (x *object) objects(path ...string) []object {
	v := x.value(path...)
	list, ok := v.([]any)
	if !ok && v != nil {
		x.invalid(path, "want a list")
	}
	var out []object
	for _, entry := range list {
		m, ok := entry.(map[string]any)
		if !ok {
			x.invalid(path, "want a list of objects")
			return nil
		}
		out = append(out, object{m, x.notes})
	}
	return out
}

// at returns the object at the path. It is empty if there is none.
func (x *object) at(path ...string) object {
	m, _ := x.value(path...).(map[string]any)
	return object{m, x.notes}
}

// unread notes that the field at the path is not read, if it has a value.
func (x *object) unread(path ...string) {
	if x.value(path...) == nil {
		return
	}
	var at field.Path
	for _, step := range path {
		at = at.Add(step)
	}
	*x.notes = append(*x.notes, convert.Note{Severity: convert.Ignored, Path: at, Message: "with " + path[len(path)-1] + ", which berth does not read"})
}

func (x *object) invalid(path []string, format string, args ...any) {
	var at field.Path
	for _, step := range path {
		at = at.Add(step)
	}
	*x.notes = append(*x.notes, convert.Note{Severity: convert.Invalid, Path: at, Message: fmt.Sprintf(format, args...)})
}
