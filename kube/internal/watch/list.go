package watch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// ListError is why the objects of one resource could not be listed.
type ListError struct {
	Resource schema.GroupVersionResource
	Err      error
}

func (e *ListError) Error() string {
	return fmt.Sprintf("%s cannot be listed: %v", e.Resource.GroupResource(), e.Err)
}

func (e *ListError) Unwrap() error { return e.Err }

// List returns the objects that a Watch with these options would deliver at first, one event
// for each, and the optional kinds that the API server does not have. The order of the events
// is that of the kinds. If some resources cannot be listed, errs has an entry for each.
func List(ctx context.Context, o Options) (events []Event, missing []schema.GroupKind, errs []*ListError) {
	type result struct {
		events []Event
		err    *ListError
	}
	kinds := append(slices.Clone(o.Optional), newerKinds()...)
	required := o.required()
	results := make([]result, len(required)+len(kinds))
	absent := make([]bool, len(kinds))
	var wg sync.WaitGroup
	for i, r := range required {
		wg.Go(func() {
			list, err := o.listRequired(ctx, r)
			results[i] = result{list, listError(r, err)}
		})
	}
	for i, kind := range kinds {
		wg.Go(func() {
			list, r, err := o.listIfServed(ctx, kind)
			absent[i] = meta.IsNoMatchError(err) || apierrors.IsNotFound(err)
			if !absent[i] {
				results[len(required)+i] = result{list, listError(r, err)}
			}
		})
	}
	wg.Wait()
	for _, r := range results {
		events = append(events, r.events...)
		if r.err != nil {
			errs = append(errs, r.err)
		}
	}
	for i, kind := range kinds {
		if absent[i] {
			missing = append(missing, kind)
		}
	}
	return events, missing, errs
}

func listError(r schema.GroupVersionResource, err error) *ListError {
	if err == nil {
		return nil
	}
	return &ListError{r, err}
}

func (o *Options) listRequired(ctx context.Context, r schema.GroupVersionResource) ([]Event, error) {
	client, err := o.restClient(r.GroupVersion())
	if err != nil {
		return nil, err
	}
	list, err := client.Get().Resource(r.Resource).VersionedParams(&metav1.ListOptions{}, scheme.ParameterCodec).Do(ctx).Get()
	if err != nil {
		return nil, err
	}
	return o.eventsOf(list)
}

// restClient returns the client of the group and version of a required kind.
func (o *Options) restClient(gv schema.GroupVersion) (rest.Interface, error) {
	switch gv {
	case corev1.SchemeGroupVersion:
		return o.Client.CoreV1().RESTClient(), nil
	case storagev1.SchemeGroupVersion:
		return o.Client.StorageV1().RESTClient(), nil
	case schedulingv1.SchemeGroupVersion:
		return o.Client.SchedulingV1().RESTClient(), nil
	case policyv1.SchemeGroupVersion:
		return o.Client.PolicyV1().RESTClient(), nil
	case batchv1.SchemeGroupVersion:
		return o.Client.BatchV1().RESTClient(), nil
	case resourcev1.SchemeGroupVersion:
		return o.Client.ResourceV1().RESTClient(), nil
	}
	return nil, fmt.Errorf("there is no client for %s", gv)
}

// newerKinds returns the kinds that are listed with their types if the API server has them in
// the version that is read.
func newerKinds() []schema.GroupKind {
	return slices.SortedFunc(maps.Keys(newer), func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
}

// listIfServed lists the objects of a kind that not every API server has.
func (o *Options) listIfServed(ctx context.Context, kind schema.GroupKind) ([]Event, schema.GroupVersionResource, error) {
	r, typed := newer[kind]
	if !typed {
		return o.listOptional(ctx, kind)
	}
	if _, err := o.Mapper.RESTMapping(kind, r.Version); err != nil {
		return nil, r, err
	}
	events, err := o.listRequired(ctx, r)
	return events, r, err
}

func (o *Options) listOptional(ctx context.Context, kind schema.GroupKind) ([]Event, schema.GroupVersionResource, error) {
	r := schema.GroupVersionResource{Group: kind.Group, Resource: kind.Kind}
	mapping, err := o.Mapper.RESTMapping(kind)
	if err != nil {
		return nil, r, err
	}
	list, err := o.Dynamic.Resource(mapping.Resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, mapping.Resource, err
	}
	events, err := o.eventsOf(list)
	return events, mapping.Resource, err
}

// eventsOf returns an event for each object of the list.
func (o *Options) eventsOf(list runtime.Object) ([]Event, error) {
	var out []Event
	err := meta.EachListItem(list, func(item runtime.Object) error {
		object, err := o.transform(item)
		out = append(out, Event{Object: object})
		return err
	})
	return out, err
}

// IsTyped reports whether objects of the kind are delivered with their types, and not as
// *unstructured.Unstructured.
func IsTyped(kind schema.GroupVersionKind) bool {
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	_, isNewer := newer[kind.GroupKind()]
	return slices.Contains(required, resource) || isNewer && newer[kind.GroupKind()] == resource
}
