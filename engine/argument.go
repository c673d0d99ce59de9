package engine

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/berth-project/berth/internal/nearest"
)

// Argument describes one argument that a plugin accepts in a profile.
type Argument struct {
	Name    string // the full path in the configuration, such as reserve.perDevice.cpu
	Type    string // the type in words, such as "list of text"
	Default string // the default as a user would write it; "" if there is none

	Struct reflect.Type // the struct that the argument is a field of
	Field  string       // the name of that field
}

// Arguments returns the arguments that the named plugin accepts, in the order of the fields
// of its struct. To find them, it calls the plugin's builder: the struct that the builder
// passes to Decode holds the defaults.
func (r *Registry) Arguments(plugin string) ([]Argument, error) {
	b := r.builders[plugin]
	if b == nil {
		return nil, fmt.Errorf("no plugin %q%s", plugin, nearest.Hint(plugin, r.Names()))
	}
	var s schema
	_, _ = b(&s) // an error does not matter: some plugins need an argument, and Decode was called before
	return s.arguments, nil
}

// schema implements the arguments of a builder. Its Decode decodes nothing and records the
// fields of the struct that it is given.
type schema struct {
	arguments []Argument
	enclosing []reflect.Type // the structs that contain the current field, the outermost first
}

// Decode records the fields of the struct that into points to, and does not change them.
func (s *schema) Decode(into any) error {
	v := reflect.ValueOf(into)
	if v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct {
		s.addFields("", v.Type().Elem(), v.Elem())
	}
	return nil
}

// addFields records the fields of the struct type. The value holds the defaults; it is the
// zero Value if the struct exists only where a configuration gives one.
func (s *schema) addFields(prefix string, t reflect.Type, v reflect.Value) {
	if slices.Contains(s.enclosing, t) {
		return // a recursive type
	}
	s.enclosing = append(s.enclosing, t)
	defer func() { s.enclosing = s.enclosing[:len(s.enclosing)-1] }()
	for i := range t.NumField() {
		f := t.Field(i)
		var value reflect.Value
		if v.IsValid() {
			value = v.Field(i)
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
			continue
		case name == "" && f.Anonymous && f.Type.Kind() == reflect.Struct:
			s.addFields(prefix, f.Type, value)
			continue
		case !f.IsExported():
			continue
		case name == "":
			name = f.Name
		}
		name = prefix + name
		s.arguments = append(s.arguments, Argument{Name: name, Type: typeInWords(f.Type), Default: defaultText(value), Struct: t, Field: f.Name})
		s.addNested(name, f.Type, value)
	}
}

// addNested records the fields of the structs that the type t of a field contains.
func (s *schema) addNested(name string, t reflect.Type, v reflect.Value) {
	switch {
	case unmarshalsItself(t):
	case t.Kind() == reflect.Pointer:
		s.addNested(name, t.Elem(), reflect.Value{})
	case t.Kind() == reflect.Slice:
		s.addNested(name+"[]", t.Elem(), reflect.Value{})
	case t.Kind() == reflect.Map:
		s.addNested(name+".*", t.Elem(), reflect.Value{})
	case t.Kind() == reflect.Struct:
		s.addFields(name+".", t, v)
	}
}

// typeInWords returns the type in words, for the documentation of arguments.
func typeInWords(t reflect.Type) string {
	if unmarshalsItself(t) {
		return strings.ToLower(t.Name())
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeInWords(t.Elem())
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "whole number"
	case reflect.Slice, reflect.Array:
		return "list of " + typeInWords(t.Elem())
	case reflect.Map:
		return "map of " + typeInWords(t.Key()) + " to " + typeInWords(t.Elem())
	case reflect.Struct:
		return "object"
	}
	return "anything"
}

// unmarshalsItself reports whether the type has its own decoder, so that its fields are not
// arguments.
func unmarshalsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t.Name() != "" && (p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()))
}

// defaultText returns the value as a user would write it: text without quotes, and
// everything else as JSON. It returns "" for an object, since each of its fields has its
// own default.
func defaultText(v reflect.Value) string {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch {
	case !v.IsValid():
		return ""
	case v.Kind() == reflect.String:
		return v.String()
	case v.Kind() == reflect.Struct && !unmarshalsItself(v.Type()):
		return ""
	case v.IsZero() && (unmarshalsItself(v.Type()) || v.Kind() == reflect.Map || v.Kind() == reflect.Slice || v.Kind() == reflect.Interface):
		return ""
	}
	text, err := json.Marshal(v.Interface())
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}
