// Package strict decodes YAML and JSON into Go values and reports every mistake with
// its place: file, line, column and field, what is wrong and what to write instead.
//
// It decodes any Go type. Documents splits a file into documents and checks them against
// limits, so that no file, however hostile, takes much memory or time. Decode then decodes
// the values of a document by json tags. ParseJSON and Blocks read most files many times faster,
// without trees, and leave everything else to Documents and Decode: all errors are theirs.
package strict

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/berth-project/berth/internal/field"
	"github.com/berth-project/berth/internal/nearest"
	"github.com/berth-project/berth/internal/phrase"
	"github.com/berth-project/berth/internal/printable"
	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Options are the settings of Decode.
type Options struct {
	File string     // the name of the file in errors
	Path field.Path // the path of the value, with which the paths in errors begin
	// AllowUnknown skips fields that the type does not have. Otherwise they are errors.
	AllowUnknown bool
	// AnyText accepts texts with any characters, and does not change them.
	AnyText bool
	// Unknown, if not nil, gets the fields that are skipped, apart from those of the status.
	Unknown *[]UnknownField
}

// UnknownField is a field that the type of a value does not have.
type UnknownField struct {
	Name  string
	Known []string // the names of the fields that the type has, sorted
}

// skip notes that a field was skipped. Few of one object are noted.
func (o *Options) skip(name string, known []string) {
	const few = 10
	if o.Unknown != nil && len(*o.Unknown) < few {
		*o.Unknown = append(*o.Unknown, UnknownField{name, known})
	}
}

// Decode decodes a value into the Go value that into points to, by its json tags. It
// returns all errors, not only the first one. A value that is missing or null leaves the
// Go value as it is, so that defaults may be set before. The value must be of a document
// that Documents has checked: Decode follows aliases and relies on those limits.
func Decode(n *yaml.Node, into any, o Options) Errors {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return Errors{{File: o.File, Message: fmt.Sprintf("cannot decode into %T: it is not a pointer", into)}}
	}
	if n == nil {
		return nil
	}
	d := decoder{Options: o, root: v.Type().Elem(), base: o.Path}
	d.Path = o.Path.Add()
	d.value(n, v.Elem())
	d.errs.sort()
	return d.errs
}

type decoder struct {
	Options
	root reflect.Type // of the whole value
	base field.Path   // of the whole value
	// lines is set if the texts of the field may have several lines.
	lines bool
	errs  Errors
}

func (d *decoder) errorf(n *yaml.Node, format string, args ...any) {
	d.errs = append(d.errs, Error{d.File, n.Line, n.Column, d.Path.String(), fmt.Sprintf(format, args...)})
}

// within calls do with the path one step longer.
func (d *decoder) within(step any, do func()) {
	d.Path = append(d.Path, step)
	do()
	d.Path = d.Path[:len(d.Path)-1]
}

// oneOrMany is implemented by list types of which a single entry may be written without
// the list.
type oneOrMany interface{ OneOrMany() }

var (
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	oneOrManyType   = reflect.TypeFor[oneOrMany]()
	fieldsV1        = reflect.TypeFor[metav1.FieldsV1]()
)

func (d *decoder) value(n *yaml.Node, v reflect.Value) {
	n = Resolve(n)
	if IsNull(n) {
		return
	}
	t := v.Type()
	if t.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(t.Elem()))
		}
		d.value(n, v.Elem())
		return
	}
	switch {
	case t == fieldsV1: // metadata.managedFields is large and not used
	case t.Implements(oneOrManyType):
		d.oneOrMany(n, v)
	case d.special(n, v):
	case reflect.PointerTo(t).Implements(unmarshaler):
		d.custom(n, v)
	case reflect.PointerTo(t).Implements(textUnmarshaler):
		d.customText(n, v)
	default:
		d.plain(n, v)
	}
}

func (d *decoder) plain(n *yaml.Node, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		d.object(n, v)
	case reflect.Map:
		d.table(n, v)
	case reflect.Slice:
		d.list(n, v)
	case reflect.Interface:
		x, err := generic(n)
		if err != nil {
			d.errorf(&yaml.Node{Line: err.Line, Column: err.Column}, "%s", err.Message)
		} else if x != nil && v.NumMethod() == 0 {
			v.Set(reflect.ValueOf(numbers(x)))
		}
	default:
		d.scalar(n, v)
	}
}

func (d *decoder) object(n *yaml.Node, v reflect.Value) {
	if !d.want(n, yaml.MappingNode, "an object") {
		return
	}
	fields := fieldsOf(v.Type())
	d.pairs(n, func(key, value *yaml.Node) {
		index, known := fields.index[key.Value]
		if known {
			lines := d.lines
			d.lines = lines || fields.lines[key.Value]
			d.within(key.Value, func() { d.value(value, v.FieldByIndex(index)) })
			d.lines = lines
		} else if d.AllowUnknown {
			if len(d.Path) == 0 || d.Path[0] != "status" {
				d.skip(printable.Text(key.Value), fields.names)
			}
		} else {
			hint := nearest.Hint(key.Value, fields.names)
			if at, elsewhere := placeOf(d.root, key.Value); elsewhere {
				hint = "; it belongs under " + d.base.Add(at...).String()
			}
			d.errorf(key, "unknown field %s%s", phrase.Quote(key.Value), hint)
		}
	})
}

func (d *decoder) table(n *yaml.Node, v reflect.Value) {
	if !d.want(n, yaml.MappingNode, "an object") {
		return
	}
	t := v.Type()
	if t.Key().Kind() != reflect.String {
		d.errorf(n, "cannot decode into %s", t)
		return
	}
	if v.IsNil() {
		v.Set(reflect.MakeMapWithSize(t, len(n.Content)/2))
	}
	d.pairs(n, func(key, value *yaml.Node) {
		item := reflect.New(t.Elem()).Elem()
		d.within(key.Value, func() { d.value(value, item) })
		v.SetMapIndex(reflect.ValueOf(d.text(key)).Convert(t.Key()), item)
	})
}

func (d *decoder) list(n *yaml.Node, v reflect.Value) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		d.custom(n, v)
		return
	}
	if !d.want(n, yaml.SequenceNode, "a list") {
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, c := range n.Content {
		d.within(i, func() { d.value(c, v.Index(i)) })
	}
}

func (d *decoder) oneOrMany(n *yaml.Node, v reflect.Value) {
	if n.Kind == yaml.SequenceNode {
		d.list(n, v)
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	d.value(n, v.Index(0))
}

func (d *decoder) pairs(n *yaml.Node, visit func(key, value *yaml.Node)) {
	for _, e := range pairs(n, visit) {
		e.File, e.Path = d.File, d.Path.String()
		d.errs = append(d.errs, e)
	}
}

func (d *decoder) want(n *yaml.Node, kind yaml.Kind, name string) bool {
	if n.Kind != kind {
		d.errorf(n, "want %s, have %s", name, Describe(n))
	}
	return n.Kind == kind
}
