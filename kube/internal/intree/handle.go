package intree

import (
	"context"

	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
)

// handle is what in-tree plugins get of their surroundings: the mirror and the objects of
// a Store. It starts no goroutine.
type handle struct {
	fwk.Handle // nil: no wrapped plugin calls the methods that are not overridden
	mirror     *mirror
	factory    informers.SharedInformerFactory
	csi        fwk.CSIManager
	client     clientset.Interface // nil: plugins write nothing
}

func newHandle(m *mirror, s *Store) *handle {
	return &handle{mirror: m, factory: s.factory, client: s.client, csi: nodevolumelimits.NewCSIManager(s.factory.Storage().V1().CSINodes().Lister())}
}

func (h *handle) SnapshotSharedLister() fwk.SharedLister                 { return h.mirror }
func (h *handle) SharedInformerFactory() informers.SharedInformerFactory { return h.factory }
func (h *handle) SharedCSIManager() fwk.CSIManager                       { return h.csi }
func (h *handle) SharedDRAManager() fwk.SharedDRAManager                 { return nil }
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
