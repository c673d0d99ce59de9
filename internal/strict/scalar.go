package strict

import (
	"encoding"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-project/berth/internal/phrase"
	"github.com/berth-project/berth/internal/printable"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func (d *decoder) scalar(n *yaml.Node, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if d.wantText(n) {
			v.SetString(d.text(n))
		}
	case reflect.Bool:
		is := strings.EqualFold(n.Value, "true")
		if n.Kind != yaml.ScalarNode || n.ShortTag() != tagBool || !is && !strings.EqualFold(n.Value, "false") {
			d.errorf(n, "want true or false, have %s", Describe(n))
			return
		}
		v.SetBool(is)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if i, ok := d.whole(n); ok {
			if v.OverflowInt(i) {
				d.errorf(n, "%d is too large: the most is %d", i, int64(math.MaxInt64)>>(64-v.Type().Bits()))
				return
			}
			v.SetInt(i)
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if i, ok := d.whole(n); ok {
			if i < 0 || v.OverflowUint(uint64(i)) {
				d.errorf(n, "%d is out of range", i)
				return
			}
			v.SetUint(uint64(i))
		}
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(n.Value, 64)
		if n.Kind != yaml.ScalarNode || (n.ShortTag() != tagFloat && n.ShortTag() != tagInt) || err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
			d.errorf(n, "want a number, have %s", Describe(n))
			return
		}
		v.SetFloat(f)
	default:
		d.errorf(n, "cannot decode into %s", v.Type())
	}
}

// text returns the string with characters that are not printable replaced. Where
// unknown fields are errors, such characters are errors as well, except in
// annotations and descriptions. Dumps of a cluster, which contain scripts of many
// origins, are decoded with AllowUnknown and are not refused for such characters.
func (d *decoder) text(n *yaml.Node) string {
	if printable.All(n.Value) || d.AnyText || d.lines && isLines(n.Value) {
		return n.Value
	}
	if !d.AllowUnknown && !slices.ContainsFunc(d.Path, func(step any) bool { return step == "annotations" || step == "description" }) {
		d.errorf(n, "%s has characters that cannot be printed; leave them out", phrase.Quote(n.Value))
	}
	return printable.Text(n.Value)
}

// isLines reports whether the text consists of lines of printable characters and tabs.
func isLines(s string) bool {
	return printable.All(strings.NewReplacer("\n", "", "\r\n", "", "\t", "").Replace(s))
}

func (d *decoder) wantText(n *yaml.Node) bool {
	switch {
	case n.Kind != yaml.ScalarNode:
		d.errorf(n, "want text, have %s", Describe(n))
		return false
	case n.ShortTag() == tagString || n.ShortTag() == tagTimestamp:
		return true
	case n.ShortTag() == tagInt || n.ShortTag() == tagFloat || n.ShortTag() == tagBool:
		d.errorf(n, `want text, have %s; put it in quotes: "%s"`, Describe(n), phrase.Clip(n.Value))
		return false
	}
	d.errorf(n, "want text, have the tag %s", phrase.Clip(n.Tag))
	return false
}

func notDigit(r rune) bool { return (r < '0' || r > '9') && r != '-' && r != '+' && r != '_' }

// whole reads a whole number. A leading zero is refused, because some YAML readers read
// the number as octal and others do not.
func (d *decoder) whole(n *yaml.Node) (int64, bool) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == tagFloat && !strings.ContainsFunc(n.Value, notDigit) {
		d.errorf(n, "%s is too large to count", phrase.Clip(n.Value)) // the library tags as a float what overflows every integer type
		return 0, false
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != tagInt {
		d.errorf(n, "want a whole number, have %s", Describe(n))
		return 0, false
	}
	s := strings.ReplaceAll(n.Value, "_", "")
	digits := strings.TrimLeft(s, "+-")
	if len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' {
		d.errorf(n, "%s has a leading zero; write %s", phrase.Clip(n.Value), phrase.Clip(strings.TrimLeft(digits, "0")))
		return 0, false
	}
	i, err := strconv.ParseInt(s, 0, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		d.errorf(n, "%s is too large to count", phrase.Clip(n.Value))
	case err != nil: // an explicit !!int tag on something that is not a number
		d.errorf(n, "want a whole number, have %s", phrase.Quote(n.Value))
	}
	return i, err == nil
}

// quantityOrWord is a quantity in place of which a word such as "unlimited" may be
// written. QuantityOrWord returns the quantity to read the text into, or nil if the
// text is such a word, which is then stored.
type quantityOrWord interface {
	QuantityOrWord(text string) *resource.Quantity
}

// special decodes types of which the own unmarshalers accept too much or return errors
// without an example. It reports whether the type is one of them.
func (d *decoder) special(n *yaml.Node, v reflect.Value) bool {
	switch into := v.Addr().Interface().(type) {
	case *resource.Quantity:
		d.quantity(n, into)
	case quantityOrWord:
		word := ""
		if n.Kind == yaml.ScalarNode {
			word = n.Value
		}
		if q := into.QuantityOrWord(word); q != nil {
			d.quantity(n, q)
		}
	case *metav1.Time:
		var t time.Time
		if d.time(n, &t) {
			*into = metav1.NewTime(t)
		}
	case *metav1.MicroTime:
		var t time.Time
		if d.time(n, &t) {
			*into = metav1.NewMicroTime(t)
		}
	case *time.Duration:
		d.duration(n, into)
	case *metav1.Duration:
		d.duration(n, &into.Duration)
	case *intstr.IntOrString:
		d.countOrPercentage(n, into)
	default:
		return false
	}
	return true
}

const longestQuantity = 40 // characters

func hasLargeExponent(text string) bool {
	const largest = 30
	i := strings.IndexAny(text, "eE")
	if i < 0 {
		return false
	}
	exp, err := strconv.Atoi(text[i+1:])
	return err == nil && (exp > largest || exp < -largest)
}

// quantity reads a quantity. Large exponents are refused before the library sees
// them: it would expand 1e999999999 to all of its digits.
func (d *decoder) quantity(n *yaml.Node, into *resource.Quantity) {
	want := func() { d.errorf(n, "want a quantity such as 8, 500m, 80Gi or 1.5Ti, have %s", Describe(n)) }
	if n.Kind != yaml.ScalarNode {
		want()
		return
	}
	switch n.ShortTag() {
	case tagString, tagInt, tagFloat:
	default:
		want()
		return
	}
	if len(n.Value) > longestQuantity {
		d.errorf(n, "%s is too long for a quantity", phrase.Quote(n.Value))
		return
	}
	text := strings.TrimSpace(n.Value)
	if hasLargeExponent(text) {
		d.errorf(n, "%s is out of range", phrase.Clip(n.Value))
		return
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		want()
		return
	}
	*into = q
}

func (d *decoder) time(n *yaml.Node, into *time.Time) bool {
	if n.Kind == yaml.ScalarNode {
		t, err := time.Parse(time.RFC3339Nano, n.Value)
		if err == nil {
			*into = t
			return true
		}
	}
	d.errorf(n, "want a time such as 2026-01-02T15:04:05Z, have %s", Describe(n))
	return false
}

func (d *decoder) duration(n *yaml.Node, into *time.Duration) {
	if n.Kind == yaml.ScalarNode {
		if t, err := time.ParseDuration(n.Value); err == nil {
			*into = t
			return
		}
	}
	d.errorf(n, "want a duration such as 30s or 1h30m, have %s", Describe(n))
}

// countOrPercentage reads a number or a text. The caller checks that the text is a
// percentage.
func (d *decoder) countOrPercentage(n *yaml.Node, into *intstr.IntOrString) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == tagString {
		*into = intstr.FromString(d.text(n))
		return
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != tagInt {
		d.errorf(n, "want a whole number or a percentage such as 30%%, have %s", Describe(n))
		return
	}
	into.Type = intstr.Int
	d.scalar(n, reflect.ValueOf(&into.IntVal).Elem())
}

// custom decodes the value with the UnmarshalJSON of its type.
func (d *decoder) custom(n *yaml.Node, v reflect.Value) {
	data, err := toJSON(n)
	if err == nil {
		err = json.Unmarshal(data, v.Addr().Interface())
	}
	if err != nil {
		d.errorf(n, "cannot read %s: %s", Describe(n), strings.TrimPrefix(err.Error(), "json: "))
	}
}

// customText decodes the value with the UnmarshalText of its type.
func (d *decoder) customText(n *yaml.Node, v reflect.Value) {
	if !d.wantText(n) {
		return
	}
	if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(n.Value)); err != nil {
		d.errorf(n, "cannot read %s: %s", Describe(n), err)
	}
}

// numbers replaces each json.Number by an int64 if it is whole, else by a float64.
func numbers(x any) any {
	switch x := x.(type) {
	case json.Number:
		if i, err := x.Int64(); err == nil {
			return i
		}
		f, err := x.Float64()
		if err != nil {
			return x.String()
		}
		return f
	case map[string]any:
		for k, v := range x {
			x[k] = numbers(v)
		}
	case []any:
		for i, v := range x {
			x[i] = numbers(v)
		}
	}
	return x
}
