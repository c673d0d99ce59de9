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

// Argument is one argument of a plugin, as its builder reads it.
type Argument struct {
	Name    string // as it is written, with the names around it: reserve.perDevice.cpu
	Type    string // in words: list of text
	Default string // as it is written; "" where there is none

	Struct reflect.Type // the struct that the argument is a field of
	Field  string       // the name of the field in it
}

// Arguments are those that the plugin of the name can have, in the order of the
// fields of its struct. They are found by building the plugin: what its builder hands
// to Decode has the defaults.
func (r *Registry) Arguments(plugin string) ([]Argument, error) {
	b := r.builders[plugin]
	if b == nil {
		return nil, fmt.Errorf("no plugin %q%s", plugin, nearest.Hint(plugin, r.Names()))
	}
	var s schema
	_, _ = b(&s) // some plugins cannot be built of their defaults alone; they were decoded all the same
	return s.found, nil
}

// schema is Arguments that decode nothing and note what they would decode into.
type schema struct {
	found []Argument
	open  []reflect.Type // the structs around the field that is looked at
}

// Decode leaves into as it is.
func (s *schema) Decode(into any) error {
	v := reflect.ValueOf(into)
	if v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct {
		s.fields("", v.Type().Elem(), v.Elem())
	}
	return nil
}

// fields notes those of a struct. The value is the zero Value where the struct is
// there only if a configuration gives it, so that there are no defaults.
func (s *schema) fields(prefix string, t reflect.Type, v reflect.Value) {
	if slices.Contains(s.open, t) {
		return // a type that has itself as a part
	}
	s.open = append(s.open, t)
	defer func() { s.open = s.open[:len(s.open)-1] }()
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
			s.fields(prefix, f.Type, value)
			continue
		case !f.IsExported():
			continue
		case name == "":
			name = f.Name
		}
		name = prefix + name
		s.found = append(s.found, Argument{Name: name, Type: words(f.Type), Default: written(value), Struct: t, Field: f.Name})
		s.inside(name, f.Type, value)
	}
}

// inside notes the fields of the structs that a field is made of.
func (s *schema) inside(name string, t reflect.Type, v reflect.Value) {
	switch {
	case custom(t):
	case t.Kind() == reflect.Pointer:
		s.inside(name, t.Elem(), reflect.Value{})
	case t.Kind() == reflect.Slice:
		s.inside(name+"[]", t.Elem(), reflect.Value{})
	case t.Kind() == reflect.Map:
		s.inside(name+".*", t.Elem(), reflect.Value{})
	case t.Kind() == reflect.Struct:
		s.fields(name+".", t, v)
	}
}

// words names a type for people who do not read Go.
func words(t reflect.Type) string {
	if custom(t) {
		return strings.ToLower(t.Name())
	}
	switch t.Kind() {
	case reflect.Pointer:
		return words(t.Elem())
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
		return "list of " + words(t.Elem())
	case reflect.Map:
		return "map of " + words(t.Key()) + " to " + words(t.Elem())
	case reflect.Struct:
		return "object"
	}
	return "anything"
}

// custom reports whether the type reads itself, so that its parts are no arguments.
func custom(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t.Name() != "" && (p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()))
}

// written is the value as a person would write it: text without quotes, and
// everything else as JSON. It is "" for an object, the parts of which have their own.
func written(v reflect.Value) string {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch {
	case !v.IsValid():
		return ""
	case v.Kind() == reflect.String:
		return v.String()
	case v.Kind() == reflect.Struct && !custom(v.Type()):
		return ""
	case v.IsZero() && (custom(v.Type()) || v.Kind() == reflect.Map || v.Kind() == reflect.Slice || v.Kind() == reflect.Interface):
		return ""
	}
	text, err := json.Marshal(v.Interface())
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}
