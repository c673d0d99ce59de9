package feed

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/phrase"
	corev1 "k8s.io/api/core/v1"
)

// The annotations by which KAI requests parts of devices.
const (
	AnnotationFraction  = "gpu-fraction"             // of each device, such as 0.5
	AnnotationGPUMemory = "gpu-memory"               // of each device, in MiB
	annotationFractions = "gpu-fraction-num-devices" // how many devices; 1 unless given
)

// readDevices sets what the pod requests of parts of devices, and which devices it holds.
func (f *Feed) readDevices(o *corev1.Pod, p *pod) convert.Notes {
	var notes convert.Notes
	r := reader{o, &notes}
	r.part(&p.shape.Need, f.options.DevicesEnforced)
	if f.env.Parts {
		r.partResources(&p.shape.Need, f.env.AlibabaUnit)
	} else {
		r.refuseParts()
	}
	if r.modelTask(p, f.options.DevicesEnforced); p.model != "" && f.options.reportsHealth() {
		p.health = Health(o)
	}
	p.plain = p.shape.Need
	if p.claims, p.extended = claimsOf(o); len(o.Spec.ResourceClaims) == 0 {
		p.annotated = r.holdings(&p.shape) // the devices of claims are those that are allocated
		if p.annotated == nil && f.env.Parts {
			p.annotated = r.partHoldings(&p.shape)
			p.shares = SharedDevices(o)
		}
	}
	return notes
}

// part sets the need from the annotations of KAI. If enforced is false, the device that a
// container gets is not the one that was chosen, so that parts of devices would be mixed up.
func (r *reader) part(need *cluster.Need, enforced bool) {
	a := r.pod.Annotations
	key, text := AnnotationFraction, a[AnnotationFraction]
	if text == "" {
		key, text = AnnotationGPUMemory, a[AnnotationGPUMemory]
	}
	if text == "" {
		return
	}
	devices := 1
	if n := r.count(a[annotationFractions], annotation(annotationFractions)); n > 0 {
		devices = n
	}
	part := cluster.Need{Devices: devices, Resource: "nvidia.com/gpu"}
	if key == AnnotationFraction {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v > 0 && v <= 1) {
			r.invalid(annotation(key), "want a share above 0 and at most 1, such as 0.5, have %s", phrase.Quote(text))
			return
		}
		part.Share = max(1, cluster.Milli(v*float64(cluster.Whole)))
	} else {
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil || v <= 0 || v > int64(cluster.MaxDeviceMemory)>>20 {
			r.invalid(annotation(key), "want a number of MiB above 0, such as 4096, have %s", phrase.Quote(text))
			return
		}
		part.Memory = cluster.Bytes(v) << 20
	}
	switch {
	case devices > cluster.MaxDevices:
		r.invalid(annotation(annotationFractions), "%d are more than the %d devices that one node may have", devices, cluster.MaxDevices)
		return
	case need.Devices > 0:
		r.invalid(annotation(key), "the pod requests %s too; keep one", need.Resource)
		return
	case !enforced:
		r.invalid(annotation(key), "a part of a device cannot be enforced here, because the kubelet chooses the device; request whole devices, or MIG slices")
	}
	*need = part
}

// holdings returns the devices that the annotation of the pod lists. It returns nil if there
// are none, or if the list cannot be that of a pod with this shape.
func (r *reader) holdings(shape *cluster.Shape) []cluster.Holding {
	text := r.pod.Annotations[AnnotationDevices]
	if text == "" || r.pod.Spec.NodeName == "" {
		return nil
	}
	var out []cluster.Holding
	problem := ""
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		problem = err.Error()
	} else {
		problem = holdingsProblem(out, shape)
	}
	if problem == "" {
		return out
	}
	*r.notes = append(*r.notes, convert.Note{
		Severity: convert.Ignored, Path: annotation(AnnotationDevices),
		Message: "with a list of devices that cannot be right; their devices count as not known", Detail: problem,
	})
	return nil
}

// holdingsProblem returns why the list cannot be what a task of the shape holds, and "" if
// it can.
func holdingsProblem(list []cluster.Holding, shape *cluster.Shape) string {
	if open := shape.Need.WholeNode || shape.Need.Layers != nil; !open && len(list) != shape.Need.Devices {
		return fmt.Sprintf("%d devices are listed, and %d are requested", len(list), shape.Need.Devices)
	}
	names := map[string]bool{}
	for _, h := range list {
		if h.Device == "" || names[h.Device] {
			return fmt.Sprintf("device %s has no name, or is listed twice", phrase.Quote(h.Device))
		}
		names[h.Device] = true
		if h.Milli < 0 || h.Milli > cluster.Whole || h.Memory < 0 || h.Memory > cluster.MaxDeviceMemory || h.Layers < 0 || h.Layers > 0 && shape.Need.Layers == nil {
			return fmt.Sprintf("%d thousandths and %d bytes of device %s are not a part of a device", h.Milli, h.Memory, phrase.Quote(h.Device))
		}
	}
	return ""
}
