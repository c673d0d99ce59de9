package controller

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/modelset"
	"github.com/berth-project/berth/kube/internal/workload"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// annotationApplied is on each Deployment and LeaderWorkerSet of a model and has a pin. As long as
// replicas run, their object is written as the pin has it: a template also depends on the nodes of
// the cluster and on the version of Berth, and a change of these must not restart servers.
const annotationApplied = "berth.dev/applied"

// maxPin is how long the annotation may be. All annotations of an object have at most 256 KiB.
const maxPin = 200 << 10

// pin is how an object was made. In the annotation it is compressed JSON.
type pin struct {
	Inputs string         `json:"inputs"` // what the template was made from, as far as users choose it
	Object map[string]any `json:"object"` // what was applied, without the number of replicas
}

// encode returns the text of the annotation; "" if it is too long.
func (p *pin) encode() (string, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := errors.Join(json.NewEncoder(z).Encode(p), z.Close()); err != nil {
		return "", err
	}
	text := base64.StdEncoding.EncodeToString(b.Bytes())
	if len(text) > maxPin {
		return "", nil
	}
	return text, nil
}

// pinOf returns the pin of the object; the zero pin if it has none that can be read.
func pinOf(o metav1.Object) (p pin) {
	z, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(o.GetAnnotations()[annotationApplied])))
	if err != nil {
		return pin{}
	}
	if json.NewDecoder(io.LimitReader(z, 8<<20)).Decode(&p) != nil {
		return pin{}
	}
	return p
}

// inputs returns a text that changes if a user changes how the model is served. The number of
// replicas does not matter.
func inputs(m *v1alpha1.Model, o *workload.Options) string {
	x := struct {
		Spec            v1alpha1.ModelSpec
		SchedulerName   string `json:",omitempty"`
		DevicesEnforced bool   `json:",omitempty"`
	}{m.Spec, "", o.DevicesEnforced}
	if x.Spec.Replicas = nil; m.Spec.SchedulerName == "" {
		x.SchedulerName = o.SchedulerName
	}
	text, err := json.Marshal(x)
	if err != nil {
		return err.Error()
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// pinned returns what was applied to the object for this model; nil if that is not known.
func (p *plan) pinned(live metav1.Object) (o *unstructured.Unstructured, inputs string) {
	known := pinOf(live)
	out := &unstructured.Unstructured{Object: known.Object}
	if known.Object == nil || out.GetName() != live.GetName() || out.GetNamespace() != live.GetNamespace() {
		return nil, ""
	}
	if owner := metav1.GetControllerOf(out); owner == nil || owner.UID != p.model.UID {
		return nil, ""
	}
	annotate(out, live.GetAnnotations()[annotationApplied])
	return out, known.Inputs
}

// pinTo adds the annotation to the object, which is then as it should be applied.
func pinTo(o *unstructured.Unstructured, inputs string) error {
	own := o.DeepCopy()
	unstructured.RemoveNestedField(own.Object, "spec", "replicas")
	text, err := (&pin{inputs, own.Object}).encode()
	if err != nil {
		return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
	}
	if text != "" {
		annotate(o, text)
	}
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
		if o, inputs := p.pinned(live); o != nil && inputs == p.inputs {
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

// set returns the LeaderWorkerSet of a replica as it should be. Of the replicas that run, one after
// the other follows a change of the spec, when all others are ready.
func (w *World) set(p *plan, x *objects, f *workload.Replicas, name string) (*unstructured.Unstructured, error) {
	if live := x.sets[name]; live != nil && p.hasNode(name) {
		o, inputs := p.pinned(live)
		if o != nil && inputs != p.inputs && !p.renewed && p.othersReady(name) {
			o, p.renewed = nil, true
		}
		if o != nil {
			return o, unstructured.SetNestedField(o.Object, int64(1), "spec", "replicas")
		}
	}
	o, err := w.options.Workload.LeaderWorkerSet(f, name)
	if err != nil {
		return nil, err
	}
	return clean(o), pinTo(o, p.inputs)
}

// hasNode reports whether a pod of the LeaderWorkerSet has a node.
func (p *plan) hasNode(set string) bool {
	return slices.ContainsFunc(p.existing, func(r replica) bool {
		return r.several && r.workload == set && slices.ContainsFunc(r.pods, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })
	})
}

// othersReady reports whether all replicas but that of the LeaderWorkerSet are ready.
func (p *plan) othersReady(set string) bool {
	return len(p.existing) >= p.spec.Replicas && !slices.ContainsFunc(p.existing, func(r replica) bool { return !(r.several && r.workload == set) && !r.ready() })
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

// outdated returns a replica that must be replaced because the spec has changed and its form is none
// of the forms of the spec any more; nil if there is none. Replicas are replaced one after the other:
// the next one when all others are ready. None is removed for a spec that can never be placed.
func (w *World) outdated(p *plan, x *objects, forms map[string]*workload.Replicas) *replica {
	if len(forms) == 0 || len(p.existing) != p.spec.Replicas {
		return nil
	}
	var out *replica
	waits := false
	for i := range p.existing {
		r := &p.existing[i]
		var live metav1.Object
		if set := x.sets[r.workload]; r.several && set != nil {
			live = set
		} else if d := x.deployments[r.workload]; !r.several && d != nil {
			live = d
		}
		changed := false
		if live != nil {
			o, inputs := p.pinned(live)
			changed = o != nil && inputs != p.inputs
		}
		switch {
		case changed && forms[r.form] == nil:
			if out == nil || out.ready() {
				out = r
			}
		case changed || !r.ready():
			waits = true
		}
	}
	if out == nil || waits || !w.canEverBePlaced(p) {
		return nil
	}
	return out
}

// canEverBePlaced reports whether a replica of the spec could be placed if there were room.
func (w *World) canEverBePlaced(p *plan) bool {
	s := *p.spec
	s.ID += "~" // the replicas that exist do not matter; no model has this name
	c := w.cluster()
	c.Once = true
	answers, err := c.Decide([]modelset.Want{{Spec: &s, Missing: 1}})
	if err != nil || answers[0].Err != nil {
		return false
	}
	return !slices.ContainsFunc(answers[0].Replicas, func(r modelset.Replica) bool { return r.Refusal != nil && r.Refusal.Permanent })
}
