package main

import (
	"cmp"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/kube/internal/crdtest"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func aModel(name, fields string) string {
	return "apiVersion: berth.dev/v1alpha1\nkind: Model\nmetadata: {name: " + name + "}\n" + fields + "\n"
}

// decimal matches a quantity that is written as a decimal number. A custom resource has no
// decimal numbers in place of quantities, so they must be quoted.
var decimal = regexp.MustCompile(`((?:gpuMemoryUtilization|cpu): )([0-9]*\.[0-9]+)`)

// testModelDocuments creates every Model of the scenarios and examples, in a dry run. The model
// that the API server returns means the same as the one in the file.
func (s server) testModelDocuments(t *testing.T) {
	env := convert.Environment{DeviceResources: map[string]bool{}}
	files, count := 0, 0
	for _, dir := range []string{"scenarios", "examples"} {
		documents := documents(t, filepath.Join(module, "..", dir), v1alpha1.KindModel)
		for _, file := range slices.Sorted(maps.Keys(documents)) {
			files++
			for _, text := range documents[file] {
				count++
				u := crdtest.Object(t, decimal.ReplaceAllString(text, `$1"$2"`))
				u.SetNamespace(metav1.NamespaceDefault)
				got, err := s.create(t.Context(), u, metav1.DryRunAll)
				if err != nil {
					t.Errorf("%s: %v", file, err)
					continue
				}
				want, notes := convert.Model(crdtest.Model(t, u), &env)
				if notes.Invalid() {
					t.Errorf("%s: %v", file, notes)
				}
				have, _ := convert.Model(crdtest.Model(t, got), &env)
				// The API server sets the time of creation, and drops the status.
				ignored := cmpopts.IgnoreFields(model.Spec{}, "Created", "Existing", "Group", "NodesPerReplica", "Backend")
				if diff := gocmp.Diff(want, have, ignored, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s: model %s (-file +server):\n%s", file, u.GetName(), diff)
				}
				if want.Backend.Name != have.Backend.Name {
					t.Errorf("%s: model %s is served by %s, and on the server by %s", file, u.GetName(), want.Backend.Name, have.Backend.Name)
				}
			}
		}
	}
	t.Logf("%d models of %d files", count, files)
	if count < 150 {
		t.Errorf("only %d models were found", count)
	}
}

// modelProblem returns what the reader of manifests reports about a file with one model. It
// does not read the files of the model, and does not know presets.
func modelProblem(text string) string {
	b, err := manifest.Parse("f", []byte(text))
	if err != nil {
		return err.Error()
	}
	_, notes := convert.Model(b.Models[0], &convert.Environment{})
	for _, n := range notes {
		if n.Severity == convert.Invalid {
			return cmp.Or(n.Path.String()+": "+n.Message, "?")
		}
	}
	return ""
}
