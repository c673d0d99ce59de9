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
	return s.arguments, nil
}

// schema is Arguments that decode nothing and note what they would decode into.
type schema struct {
	arguments []Argument
	enclosing []reflect.Type // the structs around the field that is looked at
}

// Decode leaves into as it is.
func (s *schema) Decode(into any) error {
	v := reflect.ValueOf(into)
	if v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct {
		s.addFields("", v.Type().Elem(), v.Elem())
	}
	return nil
}

// fields notes those of a struct. The value is the zero Value where the struct is
// there only if a configuration gives it, so that there are no defaults.
func (s *schema) addFields(prefix string, t reflect.Type, v reflect.Value) {
	if slices.Contains(s.enclosing, t) {
		return // a type that has itself as a part
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

// inside notes the fields of the structs that a field is made of.
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

// words names a type for people who do not read Go.
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

// custom reports whether the type reads itself, so that its parts are no arguments.
func unmarshalsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t.Name() != "" && (p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()))
}

// written is the value as a person would write it: text without quotes, and
// everything else as JSON. It is "" for an object, the parts of which have their own.
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
