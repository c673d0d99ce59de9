package workload

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/manifest"
	"sigs.k8s.io/yaml"
)

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// Every manifest in docs/serving.md is valid, and objects can be made of every model.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("../../../docs/serving.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	groups := groupsOf(t, testNodes)
	models, services := map[string]bool{}, 0
	for _, m := range yamlBlock.FindAllStringSubmatch(page, -1) {
		if !strings.Contains(m[1], "kind: Model") {
			var route struct {
				Spec struct {
					Rules []struct {
						BackendRefs []struct {
							Name string
							Port int32
						}
					}
				}
			}
			if err := yaml.Unmarshal([]byte(m[1]), &route); err != nil {
				t.Fatal(err)
			}
			for _, rule := range route.Spec.Rules {
				for _, ref := range rule.BackendRefs {
					services++
					if !models[ref.Name] || ref.Port != ServicePort {
						t.Errorf("no Service %s has the port %d", ref.Name, ref.Port)
					}
				}
			}
			continue
		}
		// The manifest is read as the command berth does.
		if _, err := manifest.LoadFrom(strings.NewReader(m[1]), []string{"-"}); err != nil {
			t.Errorf("%v in\n%s", err, m[1])
		}
		o := parseModel(t, m[1])
		o.Namespace = "ai"
		models[o.Name] = true
		form := func(a *cluster.Alternative) bool { return onSeveralPods(a) == (o.Name == "large") }
		object, err := objectOf(t, options, replicasOf(t, o, groups, true, form))
		if err != nil {
			t.Errorf("%s: %v", o.Name, err)
			continue
		}
		if o.Name == "large" && !strings.Contains(strings.Join(templatesOf(t, object)[0].Spec.Containers[0].Command, " "), "ray start") {
			t.Errorf("%s does not start Ray", o.Name)
		}
	}
	if len(models) < 8 || services == 0 {
		t.Errorf("only %d models and %d references to Services were found", len(models), services)
	}
	for field := range ofBerth {
		if !strings.Contains(page, "`"+field+"`") {
			t.Errorf("the page does not say that %s is not allowed in a template", field)
		}
	}
}
