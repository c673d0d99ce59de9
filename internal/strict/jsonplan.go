package strict

import (
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// plan is how values of a type are decoded from JSON. The plan of a type that is decoded only from
// a tree is refuse.
type plan func(d *jsonDecoder, v reflect.Value)

var plans sync.Map // reflect.Type → plan

var texts = reflect.TypeFor[map[string]string]()

// planOf returns the plan of a type. The order of the cases is that of decoder.value.
func planOf(t reflect.Type) plan {
	if p, ok := plans.Load(t); ok {
		return p.(plan)
	}
	p := makePlan(t)
	plans.Store(t, p)
	return p
}

func makePlan(t reflect.Type) plan {
	pointer := reflect.PointerTo(t)
	switch {
	case t.Kind() == reflect.Pointer:
		return (*jsonDecoder).pointer
	case t == fieldsV1:
		return func(d *jsonDecoder, _ reflect.Value) { d.value() }
	case t.Implements(oneOrManyType):
		return (*jsonDecoder).oneOrMany
	case t == reflect.TypeFor[resource.Quantity]():
		return func(d *jsonDecoder, v reflect.Value) { d.quantity(v.Addr().Interface().(*resource.Quantity)) }
	case pointer.Implements(reflect.TypeFor[quantityOrWord]()):
		return (*jsonDecoder).quantityOrWord
	case t == reflect.TypeFor[metav1.Time]():
		return func(d *jsonDecoder, v reflect.Value) {
			v.Addr().Interface().(*metav1.Time).Time = d.time()
		}
	case t == reflect.TypeFor[metav1.MicroTime]():
		return func(d *jsonDecoder, v reflect.Value) {
			v.Addr().Interface().(*metav1.MicroTime).Time = d.time()
		}
	case t == reflect.TypeFor[time.Duration](), t == reflect.TypeFor[metav1.Duration]():
		return (*jsonDecoder).duration
	case t == reflect.TypeFor[intstr.IntOrString]():
		return (*jsonDecoder).countOrPercentage
	case pointer.Implements(unmarshaler), pointer.Implements(textUnmarshaler):
		return (*jsonDecoder).refuse
	}
	return planOfKind(t)
}

func planOfKind(t reflect.Type) plan {
	switch t.Kind() {
	case reflect.Struct:
		fields := fieldsOf(t)
		return func(d *jsonDecoder, v reflect.Value) { d.fields(fields, v) }
	case reflect.Map:
		switch {
		case t == texts:
			return func(d *jsonDecoder, v reflect.Value) { d.texts(v.Addr().Interface().(*map[string]string)) }
		case t.Key().Kind() == reflect.String:
			return (*jsonDecoder).table
		}
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 {
			return (*jsonDecoder).slice
		}
	case reflect.String:
		return func(d *jsonDecoder, v reflect.Value) { v.SetString(d.text(d.quoted())) }
	case reflect.Bool:
		return (*jsonDecoder).truth
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return (*jsonDecoder).whole
	case reflect.Float32, reflect.Float64:
		return (*jsonDecoder).float
	}
	return (*jsonDecoder).refuse
}
