package controller

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/kube/internal/workload"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// annotationApplied is on each Deployment and LeaderWorkerSet of a model and has a pin. As long as
// replicas run, their object is written as the pin has it: a template also depends on the nodes of
// the cluster and on the version of Berth, and a change of these must not restart servers.
const annotationApplied = "berth.dev/applied"

// pin is how an object was made.
type pin struct {
	Inputs string         `json:"inputs"` // what the template was made from, as far as users choose it
	Object map[string]any `json:"object"` // what was applied, without the number of replicas
}

// inputs returns a text that changes if a user changes how the model is served. The number of
// replicas does not matter.
func inputs(m *v1alpha1.Model, o *workload.Options) string {
	spec := m.Spec
	spec.Replicas = nil
	text, err := json.Marshal(struct {
		Spec    v1alpha1.ModelSpec
		Options *workload.Options
	}{spec, o})
	if err != nil {
		return err.Error()
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// inputsOf returns the inputs from which the object was made; "" if they are not known.
func inputsOf(live metav1.Object) string {
	var p pin
	if json.Unmarshal([]byte(live.GetAnnotations()[annotationApplied]), &p) != nil {
		return ""
	}
	return p.Inputs
}

// pinned returns what was applied to the object, if that was made from the same inputs; nil
// otherwise.
func pinned(live metav1.Object, inputs string) *unstructured.Unstructured {
	text := live.GetAnnotations()[annotationApplied]
	var p pin
	if json.Unmarshal([]byte(text), &p) != nil || p.Inputs != inputs || p.Object == nil {
		return nil
	}
	out := &unstructured.Unstructured{Object: p.Object}
	if out.GetName() != live.GetName() || out.GetNamespace() != live.GetNamespace() {
		return nil
	}
	annotate(out, text)
	return out
}

// pinTo adds the annotation to the object, which is then as it should be applied.
func pinTo(o *unstructured.Unstructured, inputs string) error {
	own := o.DeepCopy()
	unstructured.RemoveNestedField(own.Object, "spec", "replicas")
	text, err := json.Marshal(pin{inputs, own.Object})
	if err != nil {
		return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
	}
	annotate(o, string(text))
	return nil
}

func annotate(o *unstructured.Unstructured, text string) {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationApplied] = text
	o.SetAnnotations(annotations)
}

// deployment returns the Deployment of the form as it should be.
func (w *World) deployment(p *plan, x *objects, f *workload.Replicas, count int32) (*unstructured.Unstructured, error) {
	name := x.deploymentOf(f.Key())
	if live := x.deployments[name]; live != nil && p.runs(f.Key()) {
		if o := pinned(live, p.inputs); o != nil {
			return o, unstructured.SetNestedField(o.Object, int64(count), "spec", "replicas")
		}
	}
	d, err := w.options.Workload.Deployment(f, count)
	if err != nil {
		return nil, err
	}
	switch {
	case name != "":
		d.Name = name
	case x.deployments[d.Name] != nil: // of another form: the selector of a Deployment cannot be changed
		d.Name = p.model.Name + "-" + f.Key()
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	if err != nil {
		return nil, err
	}
	o := clean(&unstructured.Unstructured{Object: object})
	return o, pinTo(o, p.inputs)
}

// set returns the LeaderWorkerSet of a replica as it should be. running is set if the replica has
// nodes.
func (w *World) set(p *plan, live *unstructured.Unstructured, f *workload.Replicas, name string, running bool) (*unstructured.Unstructured, error) {
	if live != nil && running {
		if o := pinned(live, p.inputs); o != nil {
			return o, unstructured.SetNestedField(o.Object, int64(1), "spec", "replicas")
		}
	}
	o, err := w.options.Workload.LeaderWorkerSet(f, name)
	if err != nil {
		return nil, err
	}
	return clean(o), pinTo(o, p.inputs)
}

// clean removes what the API server sets.
func clean(o *unstructured.Unstructured) *unstructured.Unstructured {
	unstructured.RemoveNestedField(o.Object, "status")
	unstructured.RemoveNestedField(o.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(o.Object, "spec", "template", "metadata", "creationTimestamp")
	return o
}

// runs reports whether a replica of the form has a node.
func (p *plan) runs(form string) bool {
	for i := range p.existing {
		if r := &p.existing[i]; r.placed && r.form == form {
			return true
		}
	}
	return false
}

// outdated returns the job of a replica that must be replaced because the spec has changed and its
// form is none of the forms of the spec any more; "" if there is none. Replicas are replaced one
// after the other: the next one when all others run.
func (p *plan) outdated(x *objects, forms map[string]*workload.Replicas) string {
	if len(forms) == 0 || len(p.existing) != p.spec.Replicas {
		return ""
	}
	out := ""
	for i := range p.existing {
		r := &p.existing[i]
		var live metav1.Object
		if r.several {
			live = x.sets[r.workload]
		} else if d := x.deployments[r.workload]; d != nil {
			live = d
		}
		switch {
		case forms[r.form] == nil && live != nil && inputsOf(live) != p.inputs:
			out = r.job
		case !r.placed || !r.ready():
			return ""
		}
	}
	return out
}
