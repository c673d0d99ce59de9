package intree

import (
	"errors"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
)

// frozenInformer is an informer that never runs: its objects are put into its indexer by
// the Store, and handlers are called by the Store. What plugins read of it changes only
// when the Store does.
type frozenInformer struct {
	cache.SharedIndexInformer // nil: methods that are not overridden must not be called
	indexer                   *sortedIndexer
	handlers                  []cache.ResourceEventHandler
}

func newFrozenInformer() *frozenInformer {
	return &frozenInformer{indexer: &sortedIndexer{cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}}
}

// put adds or replaces the object, and calls the handlers.
func (f *frozenInformer) put(obj any) (earlier any, err error) {
	earlier, known, err := f.indexer.Get(obj)
	if err != nil {
		return nil, err
	}
	if err := f.indexer.Update(obj); err != nil {
		return nil, err
	}
	for _, h := range f.handlers {
		if known {
			h.OnUpdate(earlier, obj)
		} else {
			h.OnAdd(obj, false)
		}
	}
	return earlier, nil
}

// remove removes the object with the name and namespace of obj, and calls the handlers. It
// returns the object that was removed, or nil if there was none. An object with another UID is
// another object, which has the name by now, and stays.
func (f *frozenInformer) remove(obj any) (earlier any, err error) {
	earlier, known, err := f.indexer.Get(obj)
	if err != nil || !known || !isSameObject(earlier, obj) {
		return nil, err
	}
	if err := f.indexer.Delete(earlier); err != nil {
		return nil, err
	}
	for _, h := range f.handlers {
		h.OnDelete(earlier)
	}
	return earlier, nil
}

// isSameObject reports whether both have the same UID, or one of them has none.
func isSameObject(a, b any) bool {
	x, errX := meta.Accessor(a)
	y, errY := meta.Accessor(b)
	return errX != nil || errY != nil || x.GetUID() == y.GetUID() || x.GetUID() == "" || y.GetUID() == ""
}

// AddEventHandler registers a handler, and calls it for the objects that are known, as any
// informer does.
func (f *frozenInformer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	f.handlers = append(f.handlers, h)
	for _, obj := range f.indexer.List() {
		h.OnAdd(obj, true)
	}
	return registered{}, nil
}

func (f *frozenInformer) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return f.AddEventHandler(h)
}

func (f *frozenInformer) AddEventHandlerWithOptions(h cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return f.AddEventHandler(h)
}

func (f *frozenInformer) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error {
	return errors.New("handlers of a frozen informer cannot be removed")
}

func (f *frozenInformer) AddIndexers(i cache.Indexers) error { return f.indexer.AddIndexers(i) }
func (f *frozenInformer) GetIndexer() cache.Indexer          { return f.indexer }
func (f *frozenInformer) GetStore() cache.Store              { return f.indexer }
func (f *frozenInformer) HasSynced() bool                    { return true }
func (f *frozenInformer) IsStopped() bool                    { return false }

// registered is the registration of a handler, which has seen all objects at all times.
type registered struct {
	cache.ResourceEventHandlerRegistration
}

func (registered) HasSynced() bool { return true }

// sortedIndexer is an indexer whose lists are sorted by namespace and name. If several
// volumes are equally good for a claim, VolumeBinding chooses the first of the list.
type sortedIndexer struct{ cache.Indexer }

func (s *sortedIndexer) List() []any { return sortObjects(s.Indexer.List()) }

func (s *sortedIndexer) Index(name string, obj any) ([]any, error) {
	list, err := s.Indexer.Index(name, obj)
	return sortObjects(list), err
}

func (s *sortedIndexer) ByIndex(name, value string) ([]any, error) {
	list, err := s.Indexer.ByIndex(name, value)
	return sortObjects(list), err
}

func sortObjects(list []any) []any {
	slices.SortFunc(list, func(a, b any) int { return strings.Compare(objectKey(a), objectKey(b)) })
	return list
}

// objectKey returns the namespace and the name of an object of Kubernetes.
func objectKey(obj any) string {
	m, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	return m.GetNamespace() + "/" + m.GetName()
}
