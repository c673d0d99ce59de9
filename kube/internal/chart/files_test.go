package chart

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestFiles checks that the derived files are up to date.
func TestFiles(t *testing.T) {
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range files {
		if got, err := os.ReadFile(filepath.Join(root(t), path)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is out of date; run `make manifest` (%v)", path, err)
		}
	}
	found, err := filepath.Glob(filepath.Join(root(t), copies, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if files[copies+"/"+filepath.Base(f)] == nil {
			t.Errorf("%s has no definition in %s; run `make manifest`", f, definitions)
		}
	}
}

// TestRenderedDefinitions checks that the definitions in the chart are those of kube/config/crd,
// and that "helm uninstall" keeps them.
func TestRenderedDefinitions(t *testing.T) {
	want := map[string]any{}
	for _, text := range must(Definitions())(t) {
		for _, u := range objects(t, string(text)) {
			want[u.GetName()] = u.Object["spec"]
		}
	}
	got := map[string]any{}
	for _, u := range objects(t, render(t)) {
		if u.GetKind() != "CustomResourceDefinition" {
			continue
		}
		got[u.GetName()] = u.Object["spec"]
		if u.GetAnnotations()["helm.sh/resource-policy"] != "keep" {
			t.Errorf("%s: annotations %v", u.GetName(), u.GetAnnotations())
		}
	}
	if d := cmp.Diff(want, got); d != "" || len(got) == 0 {
		t.Errorf("%d definitions (-kube/config/crd +chart):\n%s", len(got), d)
	}
	for _, u := range objects(t, render(t, "--set", "crds.keep=false")) {
		if u.GetAnnotations()["helm.sh/resource-policy"] != "" {
			t.Errorf("%s is kept", u.GetName())
		}
	}
}

func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// TestManifest checks that the manifest has the objects of the chart and a namespace for them.
func TestManifest(t *testing.T) {
	name := func(u *unstructured.Unstructured) string {
		return u.GetKind() + "/" + u.GetNamespace() + "/" + u.GetName()
	}
	var want, got []string
	for _, u := range objects(t, render(t)) {
		want = append(want, name(u))
	}
	list := objects(t, string(read(t, manifest)))
	for _, u := range list[1:] {
		got = append(got, name(u))
		for key := range u.GetLabels() {
			if strings.HasPrefix(key, "helm.sh/") || key == "app.kubernetes.io/managed-by" {
				t.Errorf("%s has the label %s", name(u), key)
			}
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("objects (-chart +manifest):\n%s", d)
	}
	if got := name(list[0]); got != "Namespace//"+Namespace {
		t.Errorf("the first object is %s", got)
	}
}

func TestValues(t *testing.T) {
	got, err := Values([]byte("# Of the file.\n\n# A.\na: {b: 1}\nc:\n  # D, on\n  # two lines.\n  d: []\n  e:\n    # F.\n    f: \"1\"\n"))
	want := []Value{{"a", "{b: 1}", "A."}, {"c.d", "[]", "D, on two lines."}, {"c.e.f", `"1"`, "F."}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if _, err := Values([]byte("a:\n  # B.\n  b: 1\n  c: 2\n")); err == nil || !strings.Contains(err.Error(), "values.yaml:4: a.c has no comment") {
		t.Errorf("have %v", err)
	}
}

// TestDashboard checks that the dashboard is an object of Grafana and reads metrics that exist.
func TestDashboard(t *testing.T) {
	var dashboard struct {
		Title  string
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(read(t, Dir+"/files/dashboard.json"), &dashboard); err != nil {
		t.Fatal(err)
	}
	page := string(read(t, "docs/reference/kube-metrics.md"))
	metric, suffix := regexp.MustCompile(`\bberth_[a-z_]+`), regexp.MustCompile(`_(bucket|sum|count)$`)
	ids, used := map[int]bool{}, map[string]bool{}
	for _, p := range dashboard.Panels {
		if ids[p.ID] {
			t.Errorf("panel %q: ID %d occurs twice", p.Title, p.ID)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			for _, name := range metric.FindAllString(target.Expr, -1) {
				used[suffix.ReplaceAllString(name, "")] = true
			}
		}
	}
	for name := range used {
		if !strings.Contains(page, "| `"+name+"` |") {
			t.Errorf("the dashboard reads %s, which docs/reference/kube-metrics.md does not have", name)
		}
	}
	for _, name := range metric.FindAllString(page, -1) {
		if !used[name] {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}
