package workload

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/field"
	"github.com/berth-project/berth/internal/launch"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// merge applies the template of the model as a strategic merge patch. It may change t.
func merge(t *corev1.PodTemplateSpec, m *v1alpha1.Model) (*corev1.PodTemplateSpec, error) {
	given, err := templateOf(m)
	if err != nil || given == nil {
		return t, err
	}
	clearReplaced(&t.Spec, &given.Spec)
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	failed := func(err error) error { return templateProblem(fmt.Sprintf("it cannot be merged: %v", err)) }
	if text, err = strategicpatch.StrategicMergePatch(text, m.Spec.Template.Raw, corev1.PodTemplateSpec{}); err != nil {
		return nil, failed(err)
	}
	out := &corev1.PodTemplateSpec{}
	if err := json.Unmarshal(text, out); err != nil {
		return nil, failed(err)
	}
	// The server is the first container, and its variables may contain those that Berth sets.
	first(out.Spec.Containers, func(c *corev1.Container) bool { return c.Name == ContainerName })
	server := &out.Spec.Containers[0]
	set := map[string]bool{}
	for _, e := range t.Spec.Containers[0].Env {
		set[e.Name] = true
	}
	first(server.Env, func(e *corev1.EnvVar) bool { return set[e.Name] })
	keepRequests(&server.Resources)
	if t.Labels[LabelServes] == "" { // only a pod that answers requests is probed
		server.StartupProbe, server.ReadinessProbe, server.LivenessProbe = nil, nil, nil
	}
	i, _ := serverOf(&given.Spec)
	return out, checkProbes(server, i)
}

// first moves the elements for which is returns true before all others, and changes nothing else of
// the order.
func first[T any](list []T, is func(*T) bool) {
	slices.SortStableFunc(list, func(a, b T) int {
		switch x, y := is(&a), is(&b); {
		case x == y:
			return 0
		case x:
			return -1
		}
		return 1
	})
}

// keepRequests keeps the API server from making limits requests: the requests are those that Berth
// has counted.
func keepRequests(r *corev1.ResourceRequirements) {
	for name := range r.Limits {
		if _, requested := r.Requests[name]; !requested {
			if r.Requests == nil {
				r.Requests = corev1.ResourceList{}
			}
			r.Requests[name] = resource.Quantity{Format: resource.DecimalSI}
		}
	}
}

func templateProblem(message string, at ...any) error {
	return &launch.Problem{Path: append(field.Path{"spec", "template"}, at...), Message: message}
}

// ofBerth are the fields of a pod that Berth decides about, and what to write instead of them.
var ofBerth = map[string]string{
	"schedulerName":             "Berth sets it; write schedulerName of the model to choose a profile",
	"nodeName":                  "the scheduler chooses the node; restrict the nodes with placement.nodeSelector",
	"nodeSelector":              "Berth would choose the devices without it; write placement.nodeSelector of the model",
	"tolerations":               "Berth would choose the devices without them; write tolerations of the model",
	"affinity":                  "Berth would choose the devices without it; write placement.nodeSelector of the model",
	"topologySpreadConstraints": "Berth would choose the devices without them; write placement.strategy of the model",
	"schedulingGates":           "Berth places the pods of a model at once; set replicas to 0 to stop it",
	"resourceClaims":            "Berth chooses the devices of a model; leave them out",
	"resources":                 "Berth would choose the devices without them; write resources of the model",
	"priority":                  "write priority of the model, or a priorityClassName",
	"restartPolicy":             "pods of a model are always restarted; leave it out",
	"hostname":                  "the pods of a replica find each other by their names; leave it out",
	"subdomain":                 "the pods of a replica find each other by their names; leave it out",
}

// ofServer are the fields of the container of the server that Berth sets, and what to write instead.
var ofServer = map[string]string{
	"image":   "write server.image of the model",
	"command": "write server.command of the model",
	"args":    "write server.args of the model",
}

// CheckTemplate returns an error if the template of the model would change what Berth has decided. It
// is a *launch.Problem.
func CheckTemplate(m *v1alpha1.Model) error {
	_, err := templateOf(m)
	return err
}

// templateOf returns the template of the model, after it was checked; nil if it has none.
func templateOf(m *v1alpha1.Model) (*corev1.PodTemplateSpec, error) {
	if m.Spec.Template == nil || len(m.Spec.Template.Raw) == 0 {
		return nil, nil
	}
	var raw map[string]any
	if err := json.Unmarshal(m.Spec.Template.Raw, &raw); err != nil {
		return nil, templateProblem(fmt.Sprintf("it is not an object: %v", err))
	}
	if err := checkDirectives(raw, nil); err != nil {
		return nil, err
	}
	t := &corev1.PodTemplateSpec{}
	if err := json.Unmarshal(m.Spec.Template.Raw, t); err != nil {
		return nil, templateProblem(fmt.Sprintf("it is not a PodTemplateSpec: %v", err))
	}
	if err := checkMetadata(raw); err != nil {
		return nil, err
	}
	spec, _ := raw["spec"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(spec)) {
		if remedy := ofBerth[name]; remedy != "" {
			return nil, templateProblem(remedy, "spec", name)
		}
	}
	if t.Spec.HostNetwork && m.Spec.Placement.Unit != "Node" {
		return nil, templateProblem("two replicas on a node would have the same ports; write placement.unit: Node beside it", "spec", "hostNetwork")
	}
	if err := checkVolumes(t.Spec.Volumes); err != nil {
		return nil, err
	}
	return t, checkContainers(&t.Spec, spec)
}

// checkDirectives reports what a strategic merge patch does not add, but removes or replaces.
func checkDirectives(value any, at field.Path) error {
	switch v := value.(type) {
	case nil:
		return templateProblem("it has no value, which would remove what Berth sets; leave it out", at...)
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			here := append(slices.Clone(at), key)
			if strings.HasPrefix(key, "$") {
				return templateProblem("directives of patches are not allowed; the template adds to what Berth sets", here...)
			}
			if err := checkDirectives(v[key], here); err != nil {
				return err
			}
		}
	case []any:
		for i, x := range v {
			if err := checkDirectives(x, append(slices.Clone(at), i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkMetadata reports metadata that Berth decides about.
func checkMetadata(raw map[string]any) error {
	metadata, _ := raw["metadata"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		if name != "labels" && name != "annotations" {
			return templateProblem("only labels and annotations can be added to the pods", "metadata", name)
		}
		entries, _ := metadata[name].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			domain, _, _ := strings.Cut(key, "/")
			if domain == v1alpha1.Group || strings.HasSuffix(domain, ".sigs.k8s.io") || key == LabelManagedBy || key == corev1.PodDeletionCost {
				return templateProblem("Berth sets it, or the controller that runs the pods; leave it out", "metadata", name, key)
			}
		}
	}
	return nil
}

// checkContainers reports containers that hold devices, and what they change of the server.
func checkContainers(t *corev1.PodSpec, spec map[string]any) error {
	for _, list := range []struct {
		field      string
		containers []corev1.Container
	}{{"initContainers", t.InitContainers}, {"containers", t.Containers}} {
		for i := range list.containers {
			c := &list.containers[i]
			at := []any{"spec", list.field, i}
			if err := checkContainer(c, at); err != nil {
				return err
			}
			if c.Name != ContainerName {
				continue
			}
			if list.field == "initContainers" {
				return templateProblem("the container of the server has this name; write another one", append(at, "name")...)
			}
			given, _ := spec["containers"].([]any)[i].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(given)) {
				if remedy := ofServer[name]; remedy != "" {
					return templateProblem(remedy, append(at, name)...)
				}
			}
			if len(c.Resources.Requests) > 0 {
				return templateProblem("Berth would choose the devices without them; write resources of the model", append(at, "resources", "requests")...)
			}
		}
	}
	return nil
}

// checkContainer reports devices of a container, and variables that Berth sets.
func checkContainer(c *corev1.Container, at []any) error {
	if c.Name == "" {
		return templateProblem("a container needs a name; the server is named "+ContainerName, append(at, "name")...)
	}
	for _, x := range []struct {
		field string
		list  corev1.ResourceList
	}{{"limits", c.Resources.Limits}, {"requests", c.Resources.Requests}} {
		for _, name := range slices.Sorted(maps.Keys(x.list)) {
			if strings.Contains(string(name), "/") {
				return templateProblem("devices and other extended resources are requested by the model itself, under placement and resources; leave it out", append(at, "resources", x.field, string(name))...)
			}
		}
	}
	if len(c.Resources.Claims) > 0 {
		return templateProblem("Berth chooses the devices of a model; leave them out", append(at, "resources", "claims")...)
	}
	for i, e := range c.Env {
		if strings.HasPrefix(e.Name, "BERTH_") || strings.HasPrefix(e.Name, "LWS_") || strings.HasSuffix(e.Name, "_VISIBLE_DEVICES") {
			return templateProblem(e.Name+" is set by Berth, by LeaderWorkerSet or by the devices; leave it out", append(at, "env", i)...)
		}
	}
	return checkHandlers(c, at)
}
