// Package objectfile writes objects of Kubernetes into files, without what may be secret, and
// reads them again.
package objectfile

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/berth-project/berth/kube/internal/watch"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// Berth and the filters of Kubernetes read the annotations of these domains and their subdomains,
// and those with these keys. All other annotations may hold secrets and are left out.
var (
	keptDomains = []string{"berth.dev", "kubernetes.io", "k8s.io", "volcano.sh", "koordinator.sh", "kai.scheduler"}
	keptKeys    = []string{"pod-group-name", "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"}
)

func isKept(key string) bool {
	if key == corev1.LastAppliedConfigAnnotation { // it holds a whole object, with its environment
		return false
	}
	domain, _, hasDomain := strings.Cut(key, "/")
	if !hasDomain {
		return slices.Contains(keptKeys, key)
	}
	return slices.ContainsFunc(keptDomains, func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
}

// dropped are fields that no decision depends on and that may hold secrets: what drivers of
// volumes and devices interpret, and annotations of templates.
var dropped = map[string]bool{"managedFields": true, "volumeAttributes": true, "parameters": true, "annotations": true, "mountOptions": true, "options": true}

// Encode returns the fields of an object that feed.Strip returned, without annotations and
// fields that may be secret.
func Encode(o runtime.Object) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	item := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(fields)}
	if _, isUntyped := o.(*unstructured.Unstructured); !isUntyped {
		kinds, _, err := scheme.Scheme.ObjectKinds(o)
		if err != nil {
			return nil, err
		}
		item.SetGroupVersionKind(kinds[0])
	}
	annotations := item.GetAnnotations()
	for key := range annotations {
		if !isKept(key) {
			delete(annotations, key)
		}
	}
	drop(item.Object)
	item.SetAnnotations(annotations)
	return item.Object, nil
}

// drop removes the dropped fields on all levels. The keys of labels, of selectors and of
// resources are not fields.
func drop(fields map[string]any) {
	for name, value := range fields {
		switch value := value.(type) {
		case map[string]any:
			switch {
			case dropped[name]:
				delete(fields, name)
			case !isTextMap(value):
				drop(value)
			}
		case []any:
			if dropped[name] {
				delete(fields, name)
				continue
			}
			for _, v := range value {
				if m, isMap := v.(map[string]any); isMap {
					drop(m)
				}
			}
		}
	}
}

// isTextMap reports whether all values are text, as those of labels are. None of them is
// dropped below.
func isTextMap(m map[string]any) bool {
	for _, v := range m {
		if _, isText := v.(string); !isText {
			return false
		}
	}
	return true
}

// Decode returns the object that Encode encoded. Objects of optional kinds are untyped, as they
// are when they are listed.
func Decode(fields map[string]any) (any, error) {
	data, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	untyped := &unstructured.Unstructured{}
	if err := untyped.UnmarshalJSON(data); err != nil {
		return nil, err
	}
	if untyped.GetName() == "" {
		return nil, errors.New("the object has no name")
	}
	kind := untyped.GroupVersionKind()
	if !watch.IsTyped(kind) {
		return untyped, nil
	}
	typed, err := scheme.Scheme.New(kind)
	if err != nil {
		return nil, err
	}
	return typed, runtime.DefaultUnstructuredConverter.FromUnstructured(untyped.Object, typed)
}
