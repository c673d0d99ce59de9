package convert

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/phrase"
)

// Limits of the devices of one node.
const (
	maxDevices      = cluster.MaxDevices
	maxDeviceMemory = cluster.MaxDeviceMemory
)

// Node converts a node of Berth. The readings of free memory in its status are checked and not
// converted, because what they mean depends on the tasks on the node.
func Node(o *v1alpha1.Node) (*cluster.Node, Notes) {
	var notes Notes
	r := reporter{&notes}
	spec := path{"spec"}
	checkName(o.Name, "node", r)
	checkLabels(o.Labels, path{"metadata", "labels"}, r)
	n := &cluster.Node{Name: o.Name, Labels: maps.Clone(o.Labels), Unschedulable: o.Spec.Unschedulable}
	n.Unified = o.Spec.UnifiedMemory
	setStatus(n, &o.Status, r)
	setCell(n, o.Spec.Cell, r)
	for i, t := range o.Spec.Taints {
		at := spec.Add("taints", i)
		checkKey(t.Key, at.Add("key"), r)
		if t.Effect == "" {
			r.errorf(at, "a taint needs an effect: %s", phrase.Either(cluster.Effects))
		}
		checkEnum(t.Effect, cluster.Effects, at.Add("effect"), r)
		n.Taints = append(n.Taints, cluster.Taint{Key: t.Key, Value: t.Value, Effect: cluster.Effect(t.Effect)})
	}
	if o.Spec.Isolation != nil {
		n.SupportedIsolation = makeSupportedIsolation(o.Spec.Isolation, spec.Add("isolation"), r)
	}

	offered := amounts(o.Spec.Resources, spec.Add("resources"), r)
	if len(o.Spec.Devices) == 0 {
		findDevices(n, offered, !slices.ContainsFunc(offered, func(a cluster.Amount) bool { return IsDevice(a.Name) }))
		if o.Spec.DeviceResource != "" {
			r.errorf(spec.Add("deviceResource"), "the node lists no devices that could be counted under this name")
		}
	} else {
		listedDevices(n, o, r)
	}
	noteDefect(n, offered, spec.Add("resources"), r)
	for _, a := range offered {
		if IsDevice(a.Name) || a.Name == o.Spec.DeviceResource {
			if len(o.Spec.Devices) > 0 {
				r.errorf(spec.Add("resources", a.Name), "devices are counted under spec.devices; leave %s out here", a.Name)
			}
			continue
		}
		n.Resources = append(n.Resources, cluster.Ledger{Name: a.Name, Capacity: a.Value})
	}
	return n, notes
}

// setStatus sets the phase and the files of the node, and checks the readings.
func setStatus(n *cluster.Node, s *v1alpha1.NodeStatus, r reporter) {
	n.Phase = cluster.Phase(s.State)
	if len(s.Files) > 0 {
		n.Artifacts = make(map[string]cluster.ArtifactState, len(s.Files))
	}
	for name, state := range s.Files {
		if name == "" || state == "" {
			r.errorf(path{"status", "files"}, "write the file and its state, such as meta-llama/Llama-3.1-8B: READY")
		}
		n.Artifacts[name] = cluster.ArtifactState(state)
	}
	for i, q := range s.FreeMemory {
		bytesOf(q, path{"status", "freeMemory", i}, r)
	}
}

// setCell sets the cell of the node from the field or, if the field is empty, from the label.
// If the field is a valid name, it also sets the label to it, because affinity within a cell is
// by label. A field and a label with different values are an error.
func setCell(n *cluster.Node, field string, r reporter) {
	label := n.Labels[v1alpha1.LabelCell]
	if field != "" && label != "" && field != label {
		r.errorf(path{"spec", "cell"}, "the node is in cell %s, but its label %s says %s; keep one", phrase.Quote(field), v1alpha1.LabelCell, phrase.Quote(label))
	}
	if n.Cell = field; field == "" {
		n.Cell = label
		return
	}
	if checkNameAt(field, "cell", path{"spec", "cell"}, r) {
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		n.Labels[v1alpha1.LabelCell] = field
	}
}

func makeSupportedIsolation(i *v1alpha1.NodeIsolation, at path, r reporter) cluster.SupportedIsolation {
	out := cluster.SupportedIsolation{Share: cluster.ShareMode(i.ShareMode), IsolableCores: i.IsolableCores}
	checkEnum(i.ShareMode, cluster.ShareModes, at.Add("shareMode"), r)
	for k, c := range i.CPU {
		checkEnum(c, cluster.CPUClasses, at.Add("cpu", k), r)
		out.CPU = append(out.CPU, cluster.CPUClass(c))
	}
	for k, c := range i.GPU {
		checkEnum(c, cluster.GPUClasses, at.Add("gpu", k), r)
		out.GPU = append(out.GPU, cluster.GPUClass(c))
	}
	checkDistinct(i.CPU, "class", at.Add("cpu"), r)
	checkDistinct(i.GPU, "class", at.Add("gpu"), r)
	if i.IsolableCores < 0 || i.IsolableCores > maxCores {
		r.errorf(at.Add("isolableCores"), "want a number of cores, have %d", i.IsolableCores)
	}
	return out
}

// findDevices sets the devices of the node from its labels and from its allocatable
// resources. If the node has device labels, its NVIDIA devices are those that the labels
// describe. Other devices are made from the allocatable resources, with the product "unknown"
// and no memory.
//
// With trustLabels, the node has all devices that its labels count. Otherwise it has at most
// as many labelled devices of a resource as it offers, and none of a resource that it does not
// offer.
func findDevices(n *cluster.Node, allocatable cluster.Resources, trustLabels bool) {
	labelled := cluster.HasDeviceLabels(n.Labels)
	if labelled {
		limit := allocatable
		if trustLabels {
			limit = nil
		}
		n.Devices, n.DeviceResource, n.Sharing, n.Defect = cluster.DevicesFromLabels(n.Name, n.Labels, limit)
	}
	for _, a := range allocatable {
		if !IsDevice(a.Name) || a.Value == 0 || (labelled && strings.HasPrefix(a.Name, "nvidia.com/")) {
			continue
		}
		if a.Value > int64(maxDevices-len(n.Devices)) {
			n.Defect = &cluster.Defect{Label: a.Name, Problem: fmt.Sprintf("%d devices are more than the %d that one node may have", a.Value, maxDevices)}
			n.Devices = nil
			return
		}
		profile := profileOf(a.Name)
		if n.DeviceResource == "" && profile == "" {
			n.DeviceResource = a.Name
		}
		kind := deviceTypes[a.Name]
		if kind == "" {
			kind = "cuda"
		}
		for range a.Value {
			n.Devices = append(n.Devices, cluster.Device{
				DeviceSpec: &cluster.DeviceSpec{Product: "unknown", Type: kind, NUMA: -1, Profile: profile, Resource: a.Name},
				UUID:       fmt.Sprintf("GPU-%s-%d", n.Name, len(n.Devices)),
			})
		}
	}
}

// UndeterminedDevices is the message of the note about a node with a Defect.
const UndeterminedDevices = "with devices that could not be determined; tasks that need devices are not placed there"

// noteDefect adds a note if the devices of the node could not be determined. The cause
// is a label, or one of the resources that the node offers; resources is their path.
func noteDefect(n *cluster.Node, offered cluster.Resources, resources path, r reporter) {
	if n.Defect == nil {
		return
	}
	at := path{"metadata", "labels"}
	if slices.ContainsFunc(offered, func(a cluster.Amount) bool { return a.Name == n.Defect.Label }) {
		at = resources
	}
	r.note(Note{
		Ignored, at.Add(n.Defect.Label), UndeterminedDevices,
		n.Defect.Label + " " + n.Defect.Problem,
	})
}
