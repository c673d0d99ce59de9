package manifest

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/berth-project/berth/internal/strict"
	"go.yaml.in/yaml/v3"
)

// asJSON returns the documents of a YAML file as a List in JSON.
func asJSON(t testing.TB, data []byte, indent string) []byte {
	t.Helper()
	var items []any
	for in := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var doc any
		err := in.Decode(&doc)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil
		}
		items = append(items, doc)
	}
	out, err := json.MarshalIndent(map[string]any{"apiVersion": "v1", "kind": "List", "items": items}, "", indent)
	if err != nil {
		return nil // a key that is not text
	}
	return out
}

// yamlFiles returns the content of every scenario and example.
func yamlFiles(t testing.TB) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, root := range []string{"testdata", "../../scenarios", "../../examples"} {
		err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(name) != ".yaml" {
				return err
			}
			out[name], err = os.ReadFile(name)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func ignore(*Bundle) {}

// compareJSON fails if JSON that is decoded without trees gives other objects, errors, notes or
// positions than the same JSON decoded as YAML. It reports whether it was decoded without.
func compareJSON(t *testing.T, data []byte) bool {
	t.Helper()
	if isSnapshot(data) {
		return false
	}
	o, ok := strict.ParseJSON(data)
	if !ok {
		return false
	}
	fast, errs := parseJSON("f", o, ignore)
	compareWithTrees(t, data, fast, errs)
	return true
}

// compareWithTrees fails if the bundle and the errors are not those of the file read as trees.
func compareWithTrees(t *testing.T, data []byte, fast *Bundle, fastErrs Errors) {
	t.Helper()
	slow, slowErrs := parseTrees("f", data, ignore)
	if f, s := fastErrs.Err(), slowErrs.Err(); !reflect.DeepEqual(f, s) {
		t.Fatalf("the errors differ:\n%v\n\n%v\n\n%s", f, s, data)
	}
	if !reflect.DeepEqual(fast.skipped, slow.skipped) || (fast.unread > 0) != (slow.unread > 0) || fast.count() != slow.count() {
		t.Fatalf("%d objects, skipped %v, %d unread; want %d, %v, %d\n%s", fast.count(), fast.skipped, fast.unread, slow.count(), slow.skipped, slow.unread, data)
	}
	type entry struct {
		id string
		e  objectEntry
	}
	entries := func(b *Bundle) (out []entry) {
		b.visit(func(id string, e objectEntry) { out = append(out, entry{id, e}) })
		return out
	}
	f, s := entries(fast), entries(slow)
	for i := range s {
		if f[i].id != s[i].id || !reflect.DeepEqual(f[i].e.object, s[i].e.object) {
			t.Fatalf("%+v\nwant %+v\n%s", f[i].e.object, s[i].e.object, data)
		}
		x, y := fast.sources[f[i].e.object], slow.sources[s[i].e.object]
		if x.start != y.start || x.position(namePath) != y.position(namePath) {
			t.Fatalf("%s is at %v, its name at %v; want %v, %v\n%s", s[i].id, x.start, x.position(namePath), y.start, y.position(namePath), data)
		}
	}
}

// TestJSONIsLikeYAML compares the two ways to decode JSON for all scenarios and examples.
func TestJSONIsLikeYAML(t *testing.T) {
	decoded := 0
	for name, data := range yamlFiles(t) {
		for _, indent := range []string{"", "  "} {
			t.Run(name, func(t *testing.T) {
				if compareJSON(t, asJSON(t, data, indent)) {
					decoded++
				}
			})
		}
	}
	if decoded < 1000 {
		t.Errorf("only %d files were decoded without a tree", decoded)
	}
}

// FuzzJSON compares the two ways to decode JSON for any JSON.
func FuzzJSON(f *testing.F) {
	files, err := filepath.Glob("../../scenarios/*/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for i, name := range files {
		if i%10 != 0 {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(asJSON(f, data, " "))
	}
	for _, text := range []string{
		`{"apiVersion":"v1","items":[{"apiVersion":"v1","kind":"Node","metadata":{"name":"n","annotations":{"a":"x\ny\u202e","é":"\/"}},"status":{"allocatable":{"cpu":8,"memory":"1Gi"}}}],"kind":"List"}`,
		`{"apiVersion":"v1","items":[{"metadata":{"name":"é","managedFields":[{"fieldsV1":{"a":1,"a":2}}]}},{"metadata":{"name":"x","name":"y"}}],"kind":"NodeList"}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"nodeName":"n","unknown":1,"unknown":2,"terminationGracePeriodSeconds":1e1}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":null,"labels":null},"spec":{"tolerations":[null,{}],"priority":-0}}`,
		`{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"b","namespace":"n"},"spec":{"maxUnavailable":1,"minAvailable":"3%"}}`,
		`{"apiVersion":"berth.dev/v1alpha1","kind":"Job","metadata":{"name":"j"},"spec":{"runTime":"1h","tasks":[{"name":"w","devices":{"share":0.5}}]}}`,
		`{"apiVersion":"apps/v1","kind":"Deployment"}`, `{"kind":"\ud83d\ude00"}`, `{}`, `{"a":[[[[]]]]}`, "{\"a\"\n:1}", "{\t}", `{"<<":{}}`, `{"a":01}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 1<<16 {
			compareJSON(t, data)
		}
	})
}
