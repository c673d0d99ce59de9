package strict

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

type inner struct {
	Deep string `json:"deep"`
}

type level string

func (l *level) UnmarshalText(b []byte) error {
	if string(b) != "low" && string(b) != "high" {
		return fmt.Errorf("want low or high")
	}
	*l = level(b)
	return nil
}

type entries []inner

func (entries) OneOrMany() {}

type target struct {
	inner    `json:",inline"`
	Text     string             `json:"text,omitempty"`
	Whole    int32              `json:"whole"`
	Small    uint8              `json:"small"`
	Number   float64            `json:"number"`
	Flag     *bool              `json:"flag"`
	List     []string           `json:"list"`
	Entries  entries            `json:"entries"`
	Table    map[string]inner   `json:"table"`
	Quantity resource.Quantity  `json:"quantity"`
	Port     intstr.IntOrString `json:"port"`
	Time     metav1.Time        `json:"time"`
	Wait     time.Duration      `json:"wait"`
	Level    level              `json:"level"`
	Any      any                `json:"any"`
	Bytes    []byte             `json:"bytes"`
	Hidden   string             `json:"-"`
}

// read decodes a text that has one document or none.
func read(file, text string, into any, allowUnknown bool) Errors {
	var errs Errors
	unread := Documents(file, []byte(text), func(root *yaml.Node) {
		errs = Decode(root, into, Options{File: file, AllowUnknown: allowUnknown})
	})
	return append(errs, unread...)
}

func TestDecode(t *testing.T) {
	yes := true
	tests := map[string]struct {
		text string
		want target
	}{
		"nothing":              {"", target{}},
		"null leaves defaults": {"text: null\nlist: ~", target{}},
		"inline":               {"deep: x", target{inner: inner{"x"}}},
		"scalars":              {"{text: a, whole: -7, small: 255, number: 1.5, flag: true}", target{Text: "a", Whole: -7, Small: 255, Number: 1.5, Flag: &yes}},
		"a number is no text unless quoted, a date is": {"text: 2026-01-02", target{Text: "2026-01-02"}},
		"hexadecimal":                     {"whole: 0x10", target{Whole: 16}},
		"whole for a fraction":            {"number: 3", target{Number: 3}},
		"one entry without a list":        {"entries: {deep: a}", target{Entries: entries{{"a"}}}},
		"many":                            {"entries: [{deep: a}, {deep: b}]", target{Entries: entries{{"a"}, {"b"}}}},
		"table":                           {"table: {a/b: {deep: x}}", target{Table: map[string]inner{"a/b": {"x"}}}},
		"quantity":                        {"quantity: 1.5Gi", target{Quantity: resource.MustParse("1.5Gi")}},
		"bare quantity":                   {"quantity: 8", target{Quantity: resource.MustParse("8")}},
		"own reader of JSON":              {"port: http", target{Port: intstr.FromString("http")}},
		"own reader of JSON, a number":    {"port: 80", target{Port: intstr.FromInt32(80)}},
		"time":                            {"time: 2026-01-02T03:04:05Z", target{Time: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}},
		"duration":                        {"wait: 90s", target{Wait: 90 * time.Second}},
		"own reader of text":              {"level: high", target{Level: "high"}},
		"anything":                        {"any: {a: [1, 2.5, x, true, null]}", target{Any: map[string]any{"a": []any{int64(1), 2.5, "x", true, nil}}}},
		"bytes":                           {"bytes: aGk=", target{Bytes: []byte("hi")}},
		"alias":                           {"text: &a hello\nlist: [*a, *a]", target{Text: "hello", List: []string{"hello", "hello"}}},
		"merge: own keys win over merged": {"any: &m {deep: x}\ntable: {a: {<<: *m}, b: {<<: *m, deep: y}}", target{Any: map[string]any{"deep": "x"}, Table: map[string]inner{"a": {"x"}, "b": {"y"}}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got target
			if errs := read("f.yaml", tc.text, &got, false); len(errs) > 0 {
				t.Fatal(errs)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(target{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestDecodeErrors(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"unknown field":                       {"txet: a", `f:1:1: unknown field "txet"; did you mean "text"?`},
		"unknown field without a similar one": {"zzz: a", `f:1:1: unknown field "zzz"`},
		"skipped tag":                         {"Hidden: a", `f:1:1: unknown field "Hidden"`},
		"deep path":                           {"table:\n  a/b: {deep: [1]}", `f:2:15: table["a/b"].deep: want text, have a list`},
		"number for text":                     {"text: 5", `f:1:7: text: want text, have the number 5; put it in quotes: "5"`},
		"bool for text":                       {"text: true", `f:1:7: text: want text, have true; put it in quotes: "true"`},
		"tag":                                 {"text: !foo x", `f:1:7: text: want text, have the tag !foo`},
		"text for number":                     {"whole: x", `f:1:8: whole: want a whole number, have "x"`},
		"fraction":                            {"whole: 1.5", `f:1:8: whole: want a whole number, have the number 1.5`},
		"too large":                           {"whole: 3000000000", `f:1:8: whole: 3000000000 is too large: the most is 2147483647`},
		"far too large":                       {"whole: 18446744073709551615", `f:1:8: whole: 18446744073709551615 is too large to count`},
		"leading zero":                        {"whole: 010", `f:1:8: whole: 010 has a leading zero; write 10`},
		"negative unsigned":                   {"small: -1", `f:1:8: small: -1 is out of range`},
		"no number":                           {"number: [1]", `f:1:9: number: want a number, have a list`},
		"infinite":                            {"number: .inf", `f:1:9: number: want a number, have the number .inf`},
		"huge":                                {"number: 1e400", `f:1:9: number: want a number, have "1e400"`},
		"yes":                                 {"flag: yes", `f:1:7: flag: want true or false, have "yes"`},
		"no list":                             {"list: a", `f:1:7: list: want a list, have "a"`},
		"no object":                           {"table: []", `f:1:8: table: want an object, have a list`},
		"no quantity":                         {"quantity: lots", `f:1:11: quantity: want a quantity such as 8, 500m, 80Gi or 1.5Ti, have "lots"`},
		"hostile exponent, a space":           {`quantity: "1e999999999 "`, `f:1:11: quantity: 1e999999999  is out of range`},
		"hostile exponent":                    {"quantity: 1e999999999", `f:1:11: quantity: 1e999999999 is out of range`},
		"hostile length":                      {"quantity: " + strings.Repeat("9", 100), `f:1:11: quantity: "` + strings.Repeat("9", 60) + `"… is too long for a quantity`},
		"no time":                             {"time: yesterday", `f:1:7: time: want a time such as 2026-01-02T15:04:05Z, have "yesterday"`},
		"no duration":                         {"wait: 5", `f:1:7: wait: want a duration such as 30s or 1h30m, have the number 5`},
		"own reader refuses":                  {"level: mid", `f:1:8: level: cannot read "mid": want low or high`},
		"duplicate key":                       {"text: a\ntext: b", `f:2:1: duplicate key "text", first written in line 1`},
		"duplicate in any":                    {"any: {a: 1, a: 2}", `f:1:13: any: duplicate key "a", first written in line 1`},
		"key is a list":                       {"[a]: b", `f:1:1: want a field name, have a list`},
		"merge of no object":                  {"<<: x", `f:1:5: <<: want an object to merge, have "x"`},
		"every error, in order":               {"whole: x\nbogus: 1\nflag: 3", "f:1:8: whole: want a whole number, have \"x\"\nf:2:1: unknown field \"bogus\"\nf:3:7: flag: want true or false, have the number 3"},
		"contains itself":                     {"any: &a [*a]", "f:1:10: alias *a contains itself"},
		"tags that do not match":              {"flag: !!bool \"x\"\nwhole: !!int x", "f:1:7: flag: want true or false, have x\nf:2:8: whole: want a whole number, have \"x\""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var into target
			if diff := cmp.Diff(tc.want, read("f", tc.text, &into, false).Error()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestDecodeLoosely(t *testing.T) {
	var got target
	errs := read("f", "future: 1\nwhole: x", &got, true)
	if len(errs) != 1 || errs[0].Path != "whole" {
		t.Errorf("unknown fields are skipped and wrong types are not: %v", errs)
	}
	if errs := read("f", "a: 1", target{}, false); len(errs) != 1 {
		t.Errorf("a target that is not a pointer: %v", errs)
	}
}

func TestErrorsAreCapped(t *testing.T) {
	var errs Errors
	for i := range 150 {
		errs = append(errs, Error{File: "f", Line: i + 1, Message: "wrong"})
	}
	lines := strings.Split(errs.Error(), "\n")
	if len(lines) != 51 || lines[0] != "f:1: wrong" || lines[50] != "… and 100 more errors" {
		t.Errorf("%d lines, from %q to %q", len(lines), lines[0], lines[len(lines)-1])
	}
	var one Error
	if !errors.As(error(errs), &one) || one.Line != 1 {
		t.Errorf("errors.As found %+v", one)
	}
}
