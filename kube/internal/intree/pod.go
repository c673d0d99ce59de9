package intree

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/berth-project/berth/internal/podkind"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedutil "k8s.io/kubernetes/pkg/scheduler/util"
)

// kind is equal for pods that every in-tree filter answers alike for.
type kind struct {
	hash [sha256.Size]byte
	node string    // the node that the pod names
	uid  types.UID // of a pod for which claims are made, so that it is the only one of its kind; "" otherwise
}

// pod is the pod of a task.
type pod struct {
	info *framework.PodInfo
	key  string // see podkind.Key
	kind kind
	// malformed is why terms of the pod about other pods cannot be parsed; "" if they can.
	malformed string
	extended  []v1.ResourceName // see extendedResources
}

func newPod(o *v1.Pod) (*pod, error) {
	if o.UID == "" {
		return nil, errors.New("the pod has no UID")
	}
	p := &pod{extended: extendedResources(o)}
	var err error
	if p.info, err = framework.NewPodInfo(o); err != nil {
		p.malformed = err.Error()
	}
	if p.key, err = podkind.Key(o); err != nil {
		return nil, err
	}
	p.kind = kindOf(o, p.key)
	return p, nil
}

// kindOf returns the kind of a pod with the key. Filters in the task form read more of a pod
// than its key stands for: its namespace, all its labels, and its node. The owners are
// included, because default constraints of topology spread are about them.
func kindOf(o *v1.Pod, key string) kind {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q", key, o.Namespace)
	for _, label := range slices.Sorted(maps.Keys(o.Labels)) {
		fmt.Fprintf(h, " %q=%q", label, o.Labels[label])
	}
	for i := range o.OwnerReferences {
		fmt.Fprintf(h, " %q", o.OwnerReferences[i].UID)
	}
	k := kind{node: o.Spec.NodeName}
	h.Sum(k.hash[:0])
	return k
}

// sampleOf returns a pod that stands for all pods with the key of o, for filters that do not
// have the task form. Claims are left to filters in the task form.
func sampleOf(o *v1.Pod) *v1.Pod {
	out := podkind.Reduce(o)
	out.Spec.Volumes = slices.DeleteFunc(out.Spec.Volumes, func(v v1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil })
	return out
}

// occupies reports whether filters in the shape form may reject a node because the pod is on
// it.
func occupies(o *v1.Pod) bool {
	return len(schedutil.GetHostPorts(o)) > 0 || slices.ContainsFunc(o.Spec.Volumes, isDisk)
}

// isDisk reports whether VolumeRestrictions compares the volume with those of other pods.
func isDisk(v v1.Volume) bool {
	return v.GCEPersistentDisk != nil || v.AWSElasticBlockStore != nil || v.RBD != nil || v.ISCSI != nil
}

// sameOccupation reports whether filters in the shape form give the same answers with either
// of the two pods on a node. The first may be nil.
func sameOccupation(a, b *v1.Pod) bool {
	if a == nil {
		return !occupies(b)
	}
	return slices.Equal(schedutil.GetHostPorts(a), schedutil.GetHostPorts(b)) && reflect.DeepEqual(a.Spec.Volumes, b.Spec.Volumes)
}
