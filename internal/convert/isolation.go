package convert

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	corev1 "k8s.io/api/core/v1"
)

// podIsolation sets the isolation that the pod requests with its annotation. A pod whose
// annotation cannot be read is invalid: it is not placed without the isolation that it may need.
func podIsolation(o *corev1.Pod, s *cluster.Shape, r reporter) {
	text, given := o.Annotations[v1alpha1.AnnotationIsolation]
	if !given {
		return
	}
	var wanted v1alpha1.Isolation
	at := isolationPath()
	if err := decodeAnnotation(text, &wanted); err != nil {
		r.errorf(at, `want JSON such as {"gpu": "DeviceExclusive"}: %v`, err)
		return
	}
	s.Isolation = makeIsolation(nil, &wanted, at, r)
	roundUpCores(s)
}

// nodeIsolation sets the isolation that the node advertises with its annotation. A node whose
// annotation has an error is used, and advertises nothing.
func nodeIsolation(o *corev1.Node, n *cluster.Node, r reporter) {
	text, given := o.Annotations[v1alpha1.AnnotationIsolation]
	if !given {
		return
	}
	var offered v1alpha1.NodeIsolation
	var mistakes Notes
	err := decodeAnnotation(text, &offered)
	if err == nil {
		n.SupportedIsolation = makeSupportedIsolation(&offered, isolationPath(), reporter{&mistakes})
		if mistakes.Invalid() {
			err = errors.New(mistakes[0].Message)
		}
	}
	if err != nil {
		n.SupportedIsolation = cluster.SupportedIsolation{}
		r.note(Note{Ignored, isolationPath(), "with an isolation that cannot be read, so that no class is offered", err.Error()})
	}
}

func isolationPath() path { return path{"metadata", "annotations", v1alpha1.AnnotationIsolation} }

// decodeAnnotation decodes one JSON value, with the fields of the type only.
func decodeAnnotation(text string, into any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("there is text after the value")
	}
	return nil
}
