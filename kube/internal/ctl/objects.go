package ctl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/kube/internal/watch"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

const kindObjects = "ClusterObjects"

// objectFile is a file with the objects of a cluster, so that the filters of Kubernetes can
// decide about it later.
type objectFile struct {
	APIVersion string             `json:"apiVersion"`
	Kind       string             `json:"kind"`
	Now        int64              `json:"now"` // when the objects were read, in nanoseconds since 1970
	Namespace  string             `json:"namespace"`
	Missing    []schema.GroupKind `json:"missing,omitempty"` // the optional kinds that the API server did not have
	Items      []map[string]any   `json:"items"`
}

// kept are parts of the keys of annotations that Berth or the filters of Kubernetes read. All
// other annotations may hold secrets and are left out.
var kept = []string{"berth.dev/", "kubernetes.io/", "k8s.io/", "volcano.sh/", "koordinator.sh/", "kai.scheduler/", "pod-group-name"}

func isKept(key string) bool {
	if key == corev1.LastAppliedConfigAnnotation { // it holds a whole object, with its environment
		return false
	}
	for _, part := range kept {
		if strings.Contains(key, part) {
			return true
		}
	}
	return false
}

// write writes the objects of the world as an objectFile.
func (w *world) write(to io.Writer) error {
	file := objectFile{APIVersion: v1alpha1.APIVersion, Kind: kindObjects, Now: w.now, Namespace: w.namespace, Missing: w.missing, Items: []map[string]any{}}
	for _, e := range w.objects {
		o, isObject := e.Object.(runtime.Object)
		if !isObject {
			return fmt.Errorf("%T is no object", e.Object)
		}
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return err
		}
		item := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(fields)}
		if _, isUntyped := o.(*unstructured.Unstructured); !isUntyped {
			kinds, _, err := scheme.Scheme.ObjectKinds(o)
			if err != nil {
				return err
			}
			item.SetGroupVersionKind(kinds[0])
		}
		annotations := item.GetAnnotations()
		for key := range annotations {
			if !isKept(key) {
				delete(annotations, key)
			}
		}
		item.SetAnnotations(annotations)
		file.Items = append(file.Items, item.Object)
	}
	e := json.NewEncoder(to)
	e.SetEscapeHTML(false)
	return e.Encode(file)
}

// readFile reads an objectFile; "-" is standard input. A time in the flags takes precedence
// over that of the file.
func (p *program) readFile(stdin io.Reader) (*world, error) {
	name := p.flags.file
	var data []byte
	var err error
	if name == "-" {
		data, err = io.ReadAll(stdin)
	} else {
		data, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, err
	}
	w, err := parseObjects(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if p.flags.now != "" {
		w.now, err = p.flags.time(p.options.Clock)
	}
	if p.flags.access.Context.Namespace != "" {
		w.namespace = p.flags.access.Context.Namespace
	}
	return w, err
}

// parseObjects reads an objectFile.
func parseObjects(data []byte) (*world, error) {
	var file objectFile
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, fmt.Errorf("this is no file that \"%s snapshot --objects\" wrote: %w", name, err)
	}
	if file.APIVersion != v1alpha1.APIVersion || file.Kind != kindObjects {
		return nil, fmt.Errorf("want apiVersion %s and kind %s, have %q and %q; \"%s snapshot --objects\" writes such a file", v1alpha1.APIVersion, kindObjects, file.APIVersion, file.Kind, name)
	}
	w := &world{namespace: file.Namespace, missing: file.Missing, now: file.Now}
	for i, item := range file.Items {
		o, err := parseObject(item)
		if err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		w.objects = append(w.objects, watch.Event{Object: o})
	}
	return w, nil
}

// parseObject decodes an object. Objects of optional kinds stay untyped, as they are when they
// are listed.
func parseObject(fields map[string]any) (any, error) {
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
