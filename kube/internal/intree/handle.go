package intree

import (
	"context"

	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// handle is what in-tree plugins get of their surroundings: the mirror and the objects of
// a Store. It starts no goroutine.
type handle struct {
	fwk.Handle // nil: no wrapped plugin calls the methods that are not overridden
	mirror     *mirror
	factory    informers.SharedInformerFactory
	csi        fwk.CSIManager
	dra        *devices
	client     clientset.Interface // nil: plugins write nothing
}

func newHandle(m *mirror, s *Store) (*handle, error) {
	slices, err := tracker.StartTracker(background, tracker.Options{SliceInformer: s.factory.Resource().V1().ResourceSlices()})
	if err != nil {
		return nil, err
	}
	allocations := assumecache.NewAssumeCache(quiet, s.factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
	h := &handle{
		mirror: m, factory: s.factory, client: s.client,
		csi: nodevolumelimits.NewCSIManager(s.factory.Storage().V1().CSINodes().Lister()),
		dra: newDevices(dynamicresources.NewDRAManager(background, allocations, slices, s.factory), s),
	}
	if resolver, reads := h.dra.DeviceClassResolver().(cache.ResourceEventHandler); reads {
		_, err = s.factory.Resource().V1().DeviceClasses().Informer().AddEventHandler(resolver)
	}
	return h, err
}

func (h *handle) SnapshotSharedLister() fwk.SharedLister                 { return h.mirror }
func (h *handle) SharedInformerFactory() informers.SharedInformerFactory { return h.factory }
func (h *handle) SharedCSIManager() fwk.CSIManager                       { return h.csi }
func (h *handle) SharedDRAManager() fwk.SharedDRAManager                 { return h.dra }
func (h *handle) ClientSet() clientset.Interface                         { return h.client }
func (h *handle) Parallelizer() fwk.Parallelizer                         { return serial{} }

// serial runs the pieces of an operation one after the other.
type serial struct{}

// Until calls piece for each index below pieces, until the context ends.
func (serial) Until(ctx context.Context, pieces int, piece workqueue.DoWorkPieceFunc, _ string) {
	for i := range pieces {
		if ctx.Err() != nil {
			return
		}
		piece(i)
	}
}
