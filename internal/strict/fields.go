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
	names []string              // sorted, for suggestions
	lines map[string]bool       // the fields with texts of several lines
	json  map[string]*jsonField // see jsonDecoder
}

// jsonField is how a field is decoded from JSON.
type jsonField struct {
	at     []int
	number int // of the name among the names
	name   string
	lines  bool
	plan   plan
}

var fieldCache sync.Map // reflect.Type → *fields

// fieldsOf reads json tags as encoding/json does: fields of an embedded struct
// without a name count as fields of the outer struct, and fields of the outer struct
// hide inner ones of the same name. The tag `strict:"lines"` means that the texts of the field may
// have several lines.
func fieldsOf(t reflect.Type) *fields {
	if f, ok := fieldCache.Load(t); ok {
		return f.(*fields)
	}
	f := &fields{index: map[string][]int{}, lines: map[string]bool{}}
	f.collect(t, nil)
	for name := range f.index {
		f.names = append(f.names, name)
	}
	slices.Sort(f.names)
	f.json = make(map[string]*jsonField, len(f.names))
	for i, name := range f.names {
		f.json[name] = &jsonField{f.index[name], i, name, f.lines[name], planOf(t.FieldByIndex(f.index[name]).Type)}
	}
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
			f.lines[name] = field.Tag.Get("strict") == "lines"
		}
	}
	for _, field := range embedded {
		f.collect(field.Type, append(at[:len(at):len(at)], field.Index...))
	}
}

// genericNames are names of fields that many types have, so that it is not known which is meant.
var genericNames = []string{"name", "key", "value", "kind", "type"}

// placeOf returns the path of the object, below a value of type root, that has a field of the
// name. If there are several, it returns the shortest path. It returns false if there is none,
// if the value itself has the field, or if the name is a generic one.
func placeOf(root reflect.Type, name string) (at []any, found bool) {
	type place struct {
		of reflect.Type
		at []any
	}
	if slices.Contains(genericNames, name) {
		return nil, false
	}
	seen := map[reflect.Type]bool{}
	for list := []place{{root, nil}}; len(list) > 0; list = list[1:] {
		p := list[0]
		for p.of.Kind() == reflect.Pointer || p.of.Kind() == reflect.Slice {
			p.of = p.of.Elem()
		}
		if p.of.Kind() != reflect.Struct || seen[p.of] || reflect.PointerTo(p.of).Implements(unmarshaler) {
			continue
		}
		seen[p.of] = true
		fields := fieldsOf(p.of)
		if _, known := fields.index[name]; known {
			return p.at, len(p.at) > 0
		}
		for _, next := range fields.names {
			if next != "metadata" { // its fields have meanings of their own
				list = append(list, place{p.of.FieldByIndex(fields.index[next]).Type, append(p.at[:len(p.at):len(p.at)], next)})
			}
		}
	}
	return nil, false
}
