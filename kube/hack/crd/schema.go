package main

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

type schema = apiextensionsv1.JSONSchemaProps

const apiPackage = "github.com/berth-project/berth/api/v1alpha1"

// special are the types with a JSON form that differs from their form in Go.
var special = map[reflect.Type]func() schema{
	reflect.TypeFor[metav1.ObjectMeta]():    func() schema { return schema{Type: "object"} },
	reflect.TypeFor[resource.Quantity]():    func() schema { return amountSchema(false) },
	reflect.TypeFor[v1alpha1.QuotaAmount](): func() schema { return amountSchema(true) },
	reflect.TypeFor[metav1.Duration]():      durationSchema,
	reflect.TypeFor[metav1.Time]():          func() schema { return schema{Type: "string", Format: "date-time"} },
	reflect.TypeFor[runtime.RawExtension](): func() schema { return schema{Type: "object", XPreserveUnknownFields: new(true)} },
}

// builder derives schemas from Go types.
type builder struct {
	comments comments
	limits   map[string]func(*schema) // by TYPE.field: what the Go type does not say
	used     map[string]bool          // of limits
}

// schemaOf returns the schema of a type.
func (b *builder) schemaOf(t reflect.Type) (schema, error) {
	if make := special[t]; make != nil {
		return make(), nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return b.schemaOf(t.Elem())
	case reflect.String:
		return schema{Type: "string"}, nil
	case reflect.Bool:
		return schema{Type: "boolean"}, nil
	case reflect.Int:
		return schema{Type: "integer", Format: reflect.Int64.String()}, nil
	case reflect.Int32, reflect.Int64:
		return schema{Type: "integer", Format: t.Kind().String()}, nil
	case reflect.Map:
		value, err := b.schemaOf(t.Elem())
		return schema{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &value}}, err
	case reflect.Slice:
		item, err := b.schemaOf(t.Elem())
		return schema{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item}}, err
	case reflect.Struct:
		return b.structOf(t)
	}
	return schema{}, fmt.Errorf("%s: there is no schema for this type", t)
}

func (b *builder) structOf(t reflect.Type) (schema, error) {
	out := schema{Type: "object", Properties: map[string]schema{}}
	if t.PkgPath() == apiPackage {
		out.Description = b.comments[t.Name()]
	}
	for i := range t.NumField() {
		if err := b.field(&out, t, t.Field(i)); err != nil {
			return out, err
		}
	}
	return out, nil
}

// field adds a field of a struct type to its schema. A field without omitempty is required.
func (b *builder) field(out *schema, t reflect.Type, f reflect.StructField) error {
	if f.Type == reflect.TypeFor[metav1.TypeMeta]() {
		text := metav1.TypeMeta{}.SwaggerDoc()
		for _, name := range []string{"apiVersion", "kind"} {
			out.Properties[name] = schema{Type: "string", Description: oneLine(text[name])}
		}
		return nil
	}
	s, err := b.schemaOf(f.Type)
	if err != nil {
		return err
	}
	name := jsonName(f)
	if f.Type != reflect.TypeFor[metav1.ObjectMeta]() { // the API server describes this field
		if s.Description, err = b.comments.of(t, f); err != nil {
			return err
		}
	}
	key := t.Name() + "." + name
	if limit := b.limits[key]; limit != nil {
		limit(&s)
		b.used[key] = true
	}
	if !strings.Contains(f.Tag.Get("json"), ",omitempty") {
		out.Required = append(out.Required, name)
	}
	out.Properties[name] = s
	return nil
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// unused returns the limits of fields that do not exist.
func (b *builder) unused() []string {
	var out []string
	for key := range b.limits {
		if !b.used[key] {
			out = append(out, key)
		}
	}
	return out
}
