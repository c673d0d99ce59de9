package strict

import (
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/berth-project/berth/internal/printable"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Decode decodes the object into the Go value that into points to, as the function Decode does.
// It reports false if the object has any mistake, or a value that it does not decode. The
// caller then decodes the tree into a new value, and so has the errors.
func (o *JSON) Decode(into any, options Options) bool {
	d := jsonDecoder{scanner: scanner{data: o.text}, Options: options}
	v := reflect.ValueOf(into).Elem()
	d.decode(v)
	return !d.bad
}

// jsonDecoder decodes JSON without a tree. It accepts what decoder accepts, and fails for
// anything else.
type jsonDecoder struct {
	scanner
	Options
	status bool // the value is in the status of the object
	free   int  // how many of the fields around the value are annotations or descriptions
	lines  bool // the texts of the field may have several lines
}

// decode decodes the next value. Null leaves the Go value as it is.
func (d *jsonDecoder) decode(v reflect.Value) { d.decodeAs(planOf(v.Type()), v) }

func (d *jsonDecoder) decodeAs(p plan, v reflect.Value) {
	if d.peek() == 'n' {
		d.word()
		return
	}
	p(d, v)
}

// refuse is the plan of types that are decoded from a tree.
func (d *jsonDecoder) refuse(reflect.Value) { d.fail() }

func (d *jsonDecoder) pointer(v reflect.Value) {
	if v.IsNil() {
		v.Set(reflect.New(v.Type().Elem()))
	}
	d.decode(v.Elem())
}

// within decodes the value of a key. It notes whether the value may have any characters.
func (d *jsonDecoder) within(key string, p plan, v reflect.Value) {
	free := d.free
	if key == "annotations" || key == "description" {
		d.free++
	}
	d.decodeAs(p, v)
	d.free = free
}

func (d *jsonDecoder) fields(f *fields, v reflect.Value) {
	var seen uint64 // the known fields, by their numbers
	var unknown []string
	d.object(func(key []byte) {
		field := f.json[string(key)]
		if field == nil {
			if !d.AllowUnknown || contains(unknown, key) || len(unknown) > 100 {
				d.fail()
				return
			}
			unknown = append(unknown, string(key))
			if !d.status {
				d.skip(printable.Text(string(key)), f.names)
			}
			d.value()
			return
		}
		if field.number >= 64 || seen&(1<<field.number) != 0 {
			d.fail()
			return
		}
		seen |= 1 << field.number
		d.status = d.status || d.depth == 1 && field.name == "status"
		lines := d.lines
		d.lines = lines || field.lines
		d.within(field.name, field.plan, v.FieldByIndex(field.at))
		d.lines = lines
		d.status = d.status && d.depth > 1
	})
}

func contains(list []string, key []byte) bool {
	for _, s := range list {
		if s == string(key) {
			return true
		}
	}
	return false
}

func (d *jsonDecoder) table(v reflect.Value) {
	t := v.Type()
	if v.IsNil() {
		v.Set(reflect.MakeMap(t))
	}
	n, p := v.Len(), planOf(t.Elem())
	d.object(func(key []byte) {
		name := string(key)
		item := reflect.New(t.Elem()).Elem()
		d.within(name, p, item)
		v.SetMapIndex(reflect.ValueOf(d.text(name)).Convert(t.Key()), item)
		if n++; v.Len() != n {
			d.fail() // the key is written twice
		}
	})
}

// texts is like table, for the most frequent type.
func (d *jsonDecoder) texts(into *map[string]string) {
	if *into == nil {
		*into = map[string]string{}
	}
	n := len(*into)
	d.object(func(key []byte) {
		name, value := string(key), ""
		if d.peek() == 'n' {
			d.word()
		} else {
			free := d.free
			if name == "annotations" || name == "description" {
				d.free++
			}
			value = d.text(d.quoted())
			d.free = free
		}
		(*into)[d.text(name)] = value
		if n++; len(*into) != n {
			d.fail()
		}
	})
}

func (d *jsonDecoder) slice(v reflect.Value) {
	if d.peek() != '[' {
		d.fail()
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, 1))
	n, p := 0, planOf(v.Type().Elem())
	d.list(func() {
		if n == v.Cap() {
			v.Grow(1)
		}
		v.SetLen(n + 1)
		v.Index(n).SetZero()
		d.decodeAs(p, v.Index(n))
		n++
	})
}

func (d *jsonDecoder) oneOrMany(v reflect.Value) {
	if d.peek() == '[' {
		d.slice(v)
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	d.decode(v.Index(0))
}

// quoted reads a string.
func (d *jsonDecoder) quoted() string {
	d.peek()
	return unquote(d.str())
}

// text returns the string as decoder.text does.
func (d *jsonDecoder) text(s string) string {
	if printable.All(s) || d.AnyText || d.lines && isLines(s) {
		return s
	}
	if !d.AllowUnknown && d.free == 0 {
		d.fail()
	}
	return printable.Text(s)
}

func (d *jsonDecoder) truth(v reflect.Value) {
	d.peek()
	v.SetBool(d.word() == 't')
}

// whole reads a whole number. Long ones are left to decoder.
func (d *jsonDecoder) whole(v reflect.Value) {
	const longest = 18
	d.peek()
	text := string(d.number())
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || len(text) > longest || v.OverflowInt(n) {
		d.fail()
		return
	}
	v.SetInt(n)
}

func (d *jsonDecoder) float(v reflect.Value) {
	d.peek()
	f, err := strconv.ParseFloat(string(d.number()), 64)
	if err != nil {
		d.fail()
		return
	}
	v.SetFloat(f)
}

// scalar reads a string or a number.
func (d *jsonDecoder) scalar() string {
	if d.peek() == '"' {
		return unquote(d.str())
	}
	return string(d.number())
}

func (d *jsonDecoder) quantity(into *resource.Quantity) { d.setQuantity(into, d.scalar()) }

func (d *jsonDecoder) setQuantity(into *resource.Quantity, text string) {
	trimmed := strings.TrimSpace(text)
	if d.bad || len(text) > longestQuantity || hasLargeExponent(trimmed) {
		d.fail()
		return
	}
	q, err := resource.ParseQuantity(trimmed)
	if err != nil {
		d.fail()
		return
	}
	*into = q
}

func (d *jsonDecoder) quantityOrWord(v reflect.Value) {
	text := d.scalar()
	if d.bad {
		return
	}
	if q := v.Addr().Interface().(quantityOrWord).QuantityOrWord(text); q != nil {
		d.setQuantity(q, text)
	}
}

func (d *jsonDecoder) time() time.Time {
	t, err := time.Parse(time.RFC3339Nano, d.quoted())
	if err != nil {
		d.fail()
	}
	return t
}

func (d *jsonDecoder) duration(v reflect.Value) {
	t, err := time.ParseDuration(d.quoted())
	if err != nil {
		d.fail()
		return
	}
	switch into := v.Addr().Interface().(type) {
	case *time.Duration:
		*into = t
	case *metav1.Duration:
		into.Duration = t
	}
}

func (d *jsonDecoder) countOrPercentage(v reflect.Value) {
	into := v.Addr().Interface().(*intstr.IntOrString)
	if d.peek() == '"' {
		text := d.quoted()
		if len(text) > 4 && text[4] == '-' {
			d.fail() // it may be a date in YAML, which is no text there
		}
		*into = intstr.FromString(d.text(text))
		return
	}
	into.Type = intstr.Int
	d.whole(reflect.ValueOf(&into.IntVal).Elem())
}
