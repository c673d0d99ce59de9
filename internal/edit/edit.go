// Package edit finds the fields of manifests that make a change of State. It writes them as
// arguments of berth whatif.
package edit

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/quantity"
	corev1 "k8s.io/api/core/v1"
)

// Manifests are the objects of a bundle, as whatif.Objects. The bundle is not a snapshot, which
// has no objects.
type Manifests struct {
	Bundle *manifest.Bundle
}

// EditJob returns the arguments that change what a job requests from was to is. If the job is
// a replica, the fields are those of its model.
func (m Manifests) EditJob(was, is *cluster.Job) []string {
	id := was.ID
	if was.Set.Name != "" {
		id = was.Set.Name
	}
	if was.Open {
		return m.editGang(was, is)
	}
	a := &assignments{object: id}
	switch o := m.Bundle.Object(id).(type) {
	case *v1alpha1.Job:
		(&jobEdit{assignments: a, object: o}).edit(was, is)
	case *corev1.Pod:
		(&podEdit{assignments: a, object: o}).edit(was, is)
		if g := (&gang{pods: []*corev1.Pod{o}}); !g.becomes(is, a.out, m.Bundle) {
			return nil
		}
	case *v1alpha1.Model:
		editModel(a, o, was, is)
	}
	return a.out
}

// EditQueue returns the arguments that change the limits and quotas of a queue.
func (m Manifests) EditQueue(was, is *cluster.Queue) []string {
	a := &assignments{object: "queue/" + was.Name}
	for _, list := range []struct {
		field   string
		was, is cluster.Resources
	}{{"limits", was.Limits, is.Limits}, {"quota", was.Quota, is.Quota}} {
		names := map[string]bool{}
		for _, x := range slices.Concat(list.was, list.is) {
			names[x.Name] = true
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			before, had := amountOf(list.was, name)
			after, has := amountOf(list.is, name)
			field := "spec." + list.field + "." + name
			switch {
			case had && !has:
				a.remove(field)
			case has && (!had || before != after):
				device := convert.IsDevice(name) || m.Bundle.Environment().DeviceResources[name]
				a.set(field, quantity.Amount(name, after, device, true))
			}
		}
	}
	return a.out
}

func amountOf(list cluster.Resources, name string) (int64, bool) {
	i := slices.IndexFunc(list, func(a cluster.Amount) bool { return a.Name == name })
	if i < 0 {
		return 0, false
	}
	return list[i].Value, true
}

// EditNode returns the arguments that change the taints of a node, whether it is cordoned and
// whether it is ready.
func (m Manifests) EditNode(was, is *cluster.Node) []string {
	a := &assignments{object: "node/" + was.Name}
	if was.Unschedulable && !is.Unschedulable {
		a.remove("spec.unschedulable")
	}
	for i, t := range slices.Backward(was.Taints) {
		if !slices.Contains(is.Taints, t) {
			a.remove(fmt.Sprintf("spec.taints[%d]", i))
		}
	}
	if was.Phase == is.Phase {
		return a.out
	}
	if o, ok := m.Bundle.Object(a.object).(*corev1.Node); ok {
		for i, c := range o.Status.Conditions {
			if c.Type == corev1.NodeReady {
				a.set(fmt.Sprintf("status.conditions[%d].status", i), string(corev1.ConditionTrue))
			}
		}
	} else {
		a.remove("status.state")
	}
	return a.out
}

// Scale returns the arguments that set the number of replicas of a model.
func (m Manifests) Scale(set string, desired int) []string {
	a := &assignments{object: set}
	a.set("spec.replicas", desired)
	return a.out
}

// Changed makes a new State of the objects after the changes of fields that the arguments name.
func (m Manifests) Changed(arguments []string) (*cluster.State, error) {
	var fields []string
	for i, a := range arguments {
		if i > 0 && arguments[i-1] == setFlag {
			fields = append(fields, a)
		}
	}
	return manifest.ChangedState(m.Bundle, fields)
}

// setFlag is the flag of berth whatif that changes a field.
const setFlag = "--set"

// assignments are arguments that set fields of one object. Equal assignments are listed once.
type assignments struct {
	object string
	out    []string
}

func (a *assignments) add(field, value string) {
	text := a.object + "." + field + "=" + value
	if !slices.Contains(a.out, text) {
		a.out = append(a.out, setFlag, text)
	}
}

func (a *assignments) remove(field string) { a.add(field, "") }

func (a *assignments) set(field string, value any) { a.add(field, valueText(value)) }

// valueText writes a value as YAML on one line. A text is written as it is if YAML reads it as
// this text.
func valueText(value any) string {
	if text, ok := value.(string); ok {
		var read any
		if text != "" && !strings.ContainsAny(text, "\n\r") && yaml.Unmarshal([]byte(text), &read) == nil && read == value {
			return text
		}
	}
	data, err := json.Marshal(value)
	if err != nil {
		return "" // no value of a change is one that JSON does not have
	}
	return string(data)
}

// labels changes labels that nodes must have and that are written at the field.
func (a *assignments) labels(field string, written map[string]string, was, is []cluster.Label) {
	for _, label := range was {
		if _, here := written[label.Key]; !here {
			continue
		}
		i := slices.IndexFunc(is, func(l cluster.Label) bool { return l.Key == label.Key })
		switch {
		case i < 0:
			a.remove(field + "." + label.Key)
		case is[i] != label:
			a.set(field+"."+label.Key, is[i].Value)
		}
	}
}

// tolerations appends the tolerations that were added to a list with the given number of entries.
func (a *assignments) tolerations(written int, was, is []cluster.Toleration) {
	for i := len(was); i < len(is); i++ {
		t := is[i]
		a.set(fmt.Sprintf("spec.tolerations[%d]", written+i-len(was)), v1alpha1.Toleration{Key: t.Key, Operator: t.Operator, Value: t.Value, Effect: string(t.Effect)})
	}
}

// isolation changes the classes that are written at the fields. The last of them for which a
// class is set decides.
func (a *assignments) isolation(was, is cluster.Isolation, written ...isolationAt) {
	edit := func(name, before, after string, of func(*v1alpha1.Isolation) string) {
		if before == after {
			return
		}
		for i, w := range slices.Backward(written) {
			given := w.isolation != nil && of(w.isolation) != ""
			switch {
			case given && after == "":
				a.remove(w.field + "." + name)
			case given || i == 0 && after != "":
				a.set(w.field+"."+name, after)
				return
			}
		}
	}
	edit("cpu", string(was.CPU), string(is.CPU), func(x *v1alpha1.Isolation) string { return x.CPU })
	edit("gpu", string(was.GPU), string(is.GPU), func(x *v1alpha1.Isolation) string { return x.GPU })
	if was.GPU != is.GPU && was.GPU == cluster.GPUSessionExclusive {
		for _, w := range written {
			if w.isolation != nil && w.isolation.Session != "" {
				a.remove(w.field + ".session")
			}
		}
	}
}

// isolationAt is an isolation and the field at which it is written.
type isolationAt struct {
	field     string
	isolation *v1alpha1.Isolation
}

// cells changes the list of cells at the field.
func (a *assignments) cells(field string, was, is string) {
	switch {
	case was == is:
	case is == "":
		a.remove(field)
	default:
		a.set(field, []string{is})
	}
}

// removedTerms returns the indexes of the terms of was that is does not have, in ascending order.
func removedTerms(was, is []cluster.JobTerm) []int {
	var out []int
	next := 0
	for i := range was {
		if next < len(is) && reflect.DeepEqual(was[i], is[next]) {
			next++
		} else {
			out = append(out, i)
		}
	}
	return out
}

// editModel changes the fields of a model that conditions on nodes and the order of jobs come
// from. What a replica requests of devices follows from other settings.
func editModel(a *assignments, o *v1alpha1.Model, was, is *cluster.Job) {
	if was.Priority != is.Priority {
		a.set("spec.priority", is.Priority)
	}
	if was.Preemptible != is.Preemptible {
		a.set("spec.preemptible", is.Preemptible)
	}
	if was.PreemptionDelay != is.PreemptionDelay {
		a.remove("spec.preemptionDelay")
	}
	before, after := was.Alternatives[0].Tasks[0].Shape, is.Alternatives[0].Tasks[0].Shape
	a.labels("spec.placement.nodeSelector", o.Spec.Placement.NodeSelector, before.Selector, after.Selector)
	if instance := o.Spec.Placement.InstanceType; instance != "" {
		a.instanceType("spec.placement", before.Selector, after.Selector)
	}
	a.tolerations(len(o.Spec.Tolerations), before.Tolerations, after.Tolerations)
	a.isolation(before.Isolation, after.Isolation, isolationAt{"spec.isolation", o.Spec.Isolation})
	a.cells("spec.placement.cells", before.Cell, after.Cell)
}

// instanceType changes the instance type of a placement at the field.
func (a *assignments) instanceType(field string, was, is []cluster.Label) {
	of := func(list []cluster.Label) string {
		for _, l := range list {
			if l.Key == v1alpha1.LabelInstanceType {
				return l.Value
			}
		}
		return ""
	}
	switch before, after := of(was), of(is); {
	case before == after:
	case after == "":
		a.remove(field + ".instanceType")
	default:
		a.set(field+".instanceType", after)
	}
}
