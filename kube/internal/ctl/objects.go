package ctl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/kube/internal/objectfile"
	"github.com/berth-project/berth/kube/internal/watch"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// write writes the objects of the world as an objectFile.
func (w *world) write(to io.Writer) error {
	file := objectFile{APIVersion: v1alpha1.APIVersion, Kind: kindObjects, Now: w.now, Namespace: w.namespace, Missing: w.missing, Items: []map[string]any{}}
	for _, e := range w.objects {
		o, isObject := e.Object.(runtime.Object)
		if !isObject {
			return fmt.Errorf("%T is no object", e.Object)
		}
		item, err := objectfile.Encode(o)
		if err != nil {
			return err
		}
		file.Items = append(file.Items, item)
	}
	e := json.NewEncoder(to)
	e.SetEscapeHTML(false)
	return e.Encode(file)
}

// readFile reads an objectFile; "-" is standard input. A time in the flags takes precedence
// over that of the file.
func (p *program) readFile(stdin io.Reader) (*world, error) {
	name := p.flags.file
	data, err := p.readInput(stdin)
	if err != nil {
		return nil, err
	}
	if isSnapshot(data) {
		return nil, fmt.Errorf("%s is a snapshot, which the commands of berth read; of kubectl berth only simulate reads it, if it is the input of a session", name)
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

// readInput reads the file that the flags name; "-" is standard input.
func (p *program) readInput(stdin io.Reader) ([]byte, error) {
	if p.flags.file == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(p.flags.file)
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
		o, err := objectfile.Decode(item)
		if err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		w.objects = append(w.objects, watch.Event{Object: o})
	}
	return w, nil
}
