package intree

import (
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// kind is equal for pods that every in-tree filter answers alike for. It is a hash of
// everything in a pod that in-tree filters read.
type kind [sha256.Size]byte

// pod is the pod of a task.
type pod struct {
	info *framework.PodInfo
	kind kind
	// malformed is why terms of the pod about other pods cannot be parsed; "" if they can.
	malformed string
}

func newPod(o *v1.Pod) (*pod, error) {
	if o.UID == "" {
		return nil, errors.New("the pod has no UID")
	}
	p := &pod{}
	var err error
	if p.info, err = framework.NewPodInfo(o); err != nil {
		p.malformed = err.Error()
	}
	p.kind, err = kindOf(o)
	return p, err
}

// kindOf returns the kind of a pod. More than what filters read is hashed: only parts of the
// spec that differ between the pods of one controller, and that no filter reads, are left
// out.
func kindOf(o *v1.Pod) (kind, error) {
	spec := o.Spec
	spec.Hostname, spec.Subdomain = "", ""
	spec.Containers = stripped(spec.Containers)
	spec.InitContainers = stripped(spec.InitContainers)
	spec.Volumes = nil
	named := false // the answer depends on the name of the pod
	for _, v := range o.Spec.Volumes {
		if v.Projected != nil || v.ConfigMap != nil || v.Secret != nil || v.DownwardAPI != nil || v.EmptyDir != nil || v.HostPath != nil {
			continue
		}
		named = named || v.Ephemeral != nil // the claim of such a volume has the name of the pod
		v.Name = ""
		spec.Volumes = append(spec.Volumes, v)
	}
	named = named || len(spec.ResourceClaims) > 0 // claims from templates belong to one pod
	text, err := spec.Marshal()
	if err != nil {
		return kind{}, err
	}
	var b strings.Builder
	b.WriteString(o.Namespace)
	for _, key := range slices.Sorted(maps.Keys(o.Labels)) {
		b.WriteString("\x00" + key + "=" + o.Labels[key])
	}
	for i := range o.OwnerReferences { // default constraints of topology spread are about the owner
		b.WriteString("\x00" + string(o.OwnerReferences[i].UID))
	}
	if named {
		b.WriteString("\x00" + string(o.UID))
	}
	b.WriteByte(0)
	b.Write(text)
	return sha256.Sum256([]byte(b.String())), nil
}

// stripped returns copies of the containers without the fields that no filter reads.
func stripped(list []v1.Container) []v1.Container {
	out := slices.Clone(list)
	for i := range out {
		c := &out[i]
		c.Image, c.Command, c.Args, c.Env, c.EnvFrom, c.VolumeMounts = "", nil, nil, nil, nil, nil
	}
	return out
}
