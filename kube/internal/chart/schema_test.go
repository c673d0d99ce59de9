package chart

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/plugins/standard"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestSchemaRejects checks that wrong values are refused with a message that names the value.
func TestSchemaRejects(t *testing.T) {
	for set, want := range map[string]string{
		"scheduler.replica=3":                            "at '/scheduler': additional properties 'replica' not allowed",
		"schedulers.replicas=3":                          "at '': additional properties 'schedulers' not allowed",
		"scheduler.replicas=0":                           "at '/scheduler/replicas': minimum: got 0, want 1",
		"scheduler.replicas=two":                         "at '/scheduler/replicas': got string, want integer",
		"scheduler.hold=5":                               "at '/scheduler/hold': got number, want string",
		"scheduler.hold=5 minutes":                       "at '/scheduler/hold': '5 minutes' does not match pattern",
		"scheduler.evictions.rate=0":                     "at '/scheduler/evictions/rate': exclusiveMinimum: got 0, want 0",
		"scheduler.evictions.rate=0.0":                   "at '/scheduler/evictions/rate': '0.0' does not match pattern",
		"scheduler.kubeAPI.qps=fast":                     "at '/scheduler/kubeAPI/qps': 'fast' does not match pattern",
		"scheduler.names=":                               "at '/scheduler/names': got string, want array",
		"scheduler.names={Berth_Scheduler}":              "at '/scheduler/names/0': 'Berth_Scheduler' does not match pattern",
		"scheduler.extraArgs={verbose}":                  "at '/scheduler/extraArgs/0': 'verbose' does not match pattern",
		"scheduler.configuration.kind=Other":             "at '/scheduler/configuration': additional properties 'kind' not allowed",
		"scheduler.configuration.profiles[0].name=a":     "at '/scheduler/configuration/profiles/0'",
		"scheduler.configuration.plugins[0].weight=0":    "at '/scheduler/configuration/plugins/0/weight': minimum: got 0, want 1",
		"controller.models.directory=/models":            "at '/controller/models': additional properties 'directory' not allowed",
		"controller.models.volume.foo=1":                 "at '/controller/models/volume': additional properties 'foo' not allowed",
		"controller.models.volume.configMap=m":           "at '/controller/models/volume/configMap': got string, want object",
		"webhook.mode=of":                                "at '/webhook/mode': value must be one of 'deny', 'warn'",
		"webhook.timeoutSeconds=60":                      "at '/webhook/timeoutSeconds': maximum: got 60, want 30",
		"policies.modelPods=deny":                        "at '/policies/modelPods': value must be one of 'Deny', 'Warn', 'Audit', 'None'",
		"image.digest=latest":                            "at '/image/digest': 'latest' does not match pattern",
		"podDisruptionBudget.maxUnavailable=0":           "at '/podDisruptionBudget/maxUnavailable'",
		`commonLabels.app\.kubernetes\.io/name=x`:        "invalid propertyName 'app.kubernetes.io/name'",
		`scheduler.podLabels.app\.kubernetes\.io/name=x`: "invalid propertyName 'app.kubernetes.io/name'",
		"controller.schedulerName=other":                 "controller.schedulerName: no scheduler of Berth is named other; the names are berth-scheduler",
	} {
		_, err := Helm("template", Release, Dir, "--set", set)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: have %v, want %s", set, err, want)
		}
	}
}

// TestSchemaAcceptsNumbers checks that numbers are accepted as Helm passes them: from --set, a
// fraction is a string.
func TestSchemaAcceptsNumbers(t *testing.T) {
	for _, number := range []string{"1", "20", "0.5", "00.05", "10.0", "2.75", ".5"} {
		for _, set := range []string{"--set", "--set-string", "--set-json"} {
			if set == "--set-json" && !json.Valid([]byte(number)) {
				continue
			}
			text := render(t, set, "scheduler.evictions.rate="+number+",scheduler.kubeAPI.qps="+number)
			for _, d := range deployments(t, text) {
				if d.Name != "berth-scheduler" {
					continue
				}
				want, _ := strconv.ParseFloat(number, 64)
				for _, name := range []string{"eviction-rate", "kube-api-qps"} {
					if got, err := strconv.ParseFloat(flag(d, name), 64); err != nil || got != want {
						t.Errorf("%s %s: --%s=%s", set, number, name, flag(d, name))
					}
				}
			}
		}
	}
}

// schema is a part of values.schema.json.
type schema struct {
	Type                 any
	AdditionalProperties *json.RawMessage
	Properties           map[string]*schema
	Items                *schema
	Enum                 []any
	Ref                  string             `json:"$ref"`
	Defs                 map[string]*schema `json:"$defs"`
}

func readSchema(t *testing.T) *schema {
	t.Helper()
	var s schema
	if err := json.Unmarshal(read(t, Dir+"/values.schema.json"), &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

// TestSchemaIsComplete checks that the schema has the values of values.yaml and no others, and
// that no object with known fields admits more.
func TestSchemaIsComplete(t *testing.T) {
	s := readSchema(t)
	var defaults map[string]any
	if err := yaml.UnmarshalStrict(read(t, valuesFile), &defaults); err != nil {
		t.Fatal(err)
	}
	delete(s.Properties, "global") // Helm adds it to the values of a chart that is part of another
	sameNames(t, "", s, defaults)
	var closed func(path string, s *schema)
	closed = func(path string, s *schema) {
		if s == nil {
			return
		}
		if len(s.Properties) > 0 && (s.AdditionalProperties == nil || string(*s.AdditionalProperties) != "false") {
			t.Errorf("the schema of %q admits unknown names", path)
		}
		for name, p := range s.Properties {
			closed(path+"."+name, p)
		}
		for name, p := range s.Defs {
			closed("$defs."+name, p)
		}
		closed(path+"[]", s.Items)
	}
	closed("", s)
}

func sameNames(t *testing.T, path string, s *schema, defaults map[string]any) {
	t.Helper()
	for name, value := range defaults {
		p := s.Properties[name]
		if p == nil {
			t.Errorf("values.schema.json does not have %s%s", path, name)
			continue
		}
		if m, ok := value.(map[string]any); ok && p.Ref == "" && len(m) > 0 {
			sameNames(t, path+name+".", p, m)
		}
	}
	for name := range s.Properties {
		if _, ok := defaults[name]; !ok {
			t.Errorf("values.yaml does not have %s%s", path, name)
		}
	}
}

// TestSchemaFields checks that scheduler.configuration has the fields of a SchedulerConfiguration,
// and that controller.models.volume may be of every kind of volume.
func TestSchemaFields(t *testing.T) {
	s := readSchema(t)
	configuration := s.Properties["scheduler"].Properties["configuration"]
	for _, c := range []struct {
		schema *schema
		value  any
		not    []string
	}{
		{configuration, v1alpha1.SchedulerConfiguration{}, []string{"metadata"}},
		{configuration.Properties["profiles"].Items, v1alpha1.ProfileConfig{}, nil},
		{s.Defs["plugin"], v1alpha1.PluginConfig{}, nil},
		{s.Defs["volume"], corev1.VolumeSource{}, nil},
	} {
		want := fields(c.value)
		want = slices.DeleteFunc(want, func(name string) bool { return slices.Contains(c.not, name) })
		if got := slices.Sorted(maps.Keys(c.schema.Properties)); !slices.Equal(got, want) {
			t.Errorf("%T: the schema has %q, want %q", c.value, got, want)
		}
	}
}

// TestSchemaPacking checks that packing may be every word that a profile accepts.
func TestSchemaPacking(t *testing.T) {
	var got []string
	for _, word := range readSchema(t).Defs["packing"].Enum {
		got = append(got, word.(string))
	}
	if !slices.Equal(got, standard.Policies()) {
		t.Errorf("the schema has %q, want %q", got, standard.Policies())
	}
}

// fields returns the sorted names of the fields of a struct in JSON.
func fields(value any) []string {
	var out []string
	for i := range reflect.TypeOf(value).NumField() {
		name, _, _ := strings.Cut(reflect.TypeOf(value).Field(i).Tag.Get("json"), ",")
		if name != "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
