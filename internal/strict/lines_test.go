package strict

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
)

type script struct {
	Name     string                `json:"name"`
	Lines    []string              `json:"lines" strict:"lines"`
	Within   map[string]string     `json:"within" strict:"lines"`
	Raw      *runtime.RawExtension `json:"raw"`
	Children []script              `json:"children"`
}

// Only fields with a tag may have texts of several lines, and these no other characters that
// cannot be printed. JSON and YAML are read alike.
func TestLines(t *testing.T) {
	const hidden = "has characters that cannot be printed; leave them out"
	for name, tc := range map[string]struct {
		text string
		want script
		errs string
	}{
		"lines":          {`{"lines": ["a\n\tb\r\n", "c"]}`, script{Lines: []string{"a\n\tb\r\n", "c"}}, ""},
		"in a map":       {`{"within": {"k": "a\nb"}}`, script{Within: map[string]string{"k": "a\nb"}}, ""},
		"below":          {`{"children": [{"lines": ["a\nb"]}]}`, script{Children: []script{{Lines: []string{"a\nb"}}}}, ""},
		"another field":  {`{"lines": ["a\nb"], "name": "a\nb"}`, script{}, `name: "a\nb" ` + hidden},
		"field of child": {`{"children": [{"lines": ["a\nb"]}, {"name": "a\nb"}]}`, script{}, `children[1].name: "a\nb" ` + hidden},
		"escape":         {`{"lines": ["a\n\u001bb"]}`, script{}, `lines[0]: "a\n\x1bb" ` + hidden},
		"return alone":   {`{"lines": ["a\rb"]}`, script{}, `lines[0]: "a\rb" ` + hidden},
		"raw":            {`{"raw": {"b": [1.50, true, null], "a": "x\ny"}}`, script{Raw: &runtime.RawExtension{Raw: []byte(`{"a":"x\ny","b":[1.50,true,null]}`)}}, ""},
		"raw null":       {`{"raw": null}`, script{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got script
			errs := read("", tc.text, &got, false)
			if diff := cmp.Diff(tc.errs, errs.Error()); diff != "" {
				t.Errorf("errors (-want +got)\n%s", diff)
			}
			var direct script
			if again := DecodeJSON([]byte(tc.text), &direct, Options{}); again.Error() != errs.Error() {
				t.Errorf("DecodeJSON: %v", again)
			}
			if tc.errs != "" {
				return
			}
			if diff := cmp.Diff([]script{tc.want, tc.want}, []script{got, direct}); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// DecodeJSON reports what is wrong with a text, and leaves no part of it in the value.
func TestDecodeJSON(t *testing.T) {
	for name, tc := range map[string]struct {
		text    string
		options Options
		want    string
	}{
		"nothing":  {"", Options{}, ""},
		"a list":   {"[]", Options{}, "want an object, have a list"},
		"no JSON":  {"{", Options{}, "this is not YAML: did not find expected node content"},
		"deep":     {strings.Repeat(`{"raw":`, 200) + "1" + strings.Repeat("}", 200), Options{}, "nested more than 100 levels deep"},
		"unknown":  {`{"nam": "a"}`, Options{}, `unknown field "nam"; did you mean "name"?`},
		"any text": {`{"name": "a\n\u001bb"}`, Options{AnyText: true}, ""},
	} {
		got := script{Name: "before"}
		errs := DecodeJSON([]byte(tc.text), &got, tc.options)
		if errs.Error() != tc.want {
			t.Errorf("%s: %v, want %s", name, errs, tc.want)
		}
		if got.Name == "before" {
			t.Errorf("%s: the value has what it had before", name)
		}
		if tc.options.AnyText && got.Name != "a\n\x1bb" {
			t.Errorf("%s: %q", name, got.Name)
		}
	}
}
