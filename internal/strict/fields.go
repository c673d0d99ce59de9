package strict

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// fields are the fields of a struct by their names in JSON.
type fields struct {
	index map[string][]int
	names []string // sorted, for suggestions
}

var fieldCache sync.Map // reflect.Type → *fields

// fieldsOf reads json tags as encoding/json does: fields of an embedded struct
// without a name count as fields of the outer struct, and fields of the outer struct
// hide inner ones of the same name.
func fieldsOf(t reflect.Type) *fields {
	if f, ok := fieldCache.Load(t); ok {
		return f.(*fields)
	}
	f := &fields{index: map[string][]int{}}
	f.collect(t, nil)
	for name := range f.index {
		f.names = append(f.names, name)
	}
	slices.Sort(f.names)
	fieldCache.Store(t, f)
	return f
}

func (f *fields) collect(t reflect.Type, at []int) {
	var embedded []reflect.StructField
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" && options == "" {
			continue
		}
		if field.Anonymous && name == "" && field.Type.Kind() == reflect.Struct {
			embedded = append(embedded, field)
			continue
		}
		if !field.IsExported() {
			continue
		}
		if name == "" {
			name = field.Name
		}
		if _, hidden := f.index[name]; !hidden {
			f.index[name] = append(at[:len(at):len(at)], i)
		}
	}
	for _, field := range embedded {
		f.collect(field.Type, append(at[:len(at):len(at)], field.Index...))
	}
}
