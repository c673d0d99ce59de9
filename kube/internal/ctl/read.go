package ctl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/kube/internal/facts"
	"github.com/berth-project/berth/kube/internal/modelsource"
	"github.com/berth-project/berth/kube/internal/watch"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// world is what was read of the cluster.
type world struct {
	namespace string // of names without one
	objects   []watch.Event
	missing   []schema.GroupKind // the optional kinds that the API server does not have
	noModels  error              // why Models could not be listed; nil if they could
	now       int64
}

// read lists the objects of the cluster, or reads them from the file that the flags name.
func (p *program) read() (*world, error) {
	if p.flags.file != "" {
		return p.readFile(p.stdin)
	}
	now, err := p.flags.time(p.options.Clock)
	if err != nil {
		return nil, err
	}
	config, namespace, err := p.flags.connect()
	if err != nil {
		return nil, err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := listOptions(config)
	if err != nil {
		return nil, err
	}
	w := &world{namespace: namespace, now: now}
	var errs []*watch.ListError
	w.objects, w.missing, errs = watch.List(ctx, *o)
	// Other questions can be answered without Models, which a user may not be allowed to list.
	if at := slices.IndexFunc(errs, isAboutModels); at >= 0 && len(errs) == 1 {
		w.noModels, errs = explainList(config.Host, errs), nil
	}
	if len(errs) > 0 {
		return nil, explainList(config.Host, errs)
	}
	return w, nil
}

// listOptions returns the clients and the kinds of a list. It asks the API server which kinds
// it has.
func listOptions(config *rest.Config) (*watch.Options, error) {
	binary := rest.CopyConfig(config)
	binary.AcceptContentTypes, binary.ContentType = "application/vnd.kubernetes.protobuf,application/json", "application/vnd.kubernetes.protobuf"
	typed, err := kubernetes.NewForConfig(binary)
	if err != nil {
		return nil, explainConfig(err)
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, explainConfig(err)
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, explainConfig(err)
	}
	groups, err := restmapper.GetAPIGroupResources(d)
	if err != nil {
		return nil, explainList(config.Host, []*watch.ListError{{Resource: schema.GroupVersionResource{Resource: "apigroups"}, Err: err}})
	}
	return &watch.Options{
		Client: typed, Dynamic: untyped, Mapper: fixedMapper{restmapper.NewDiscoveryRESTMapper(groups)},
		Optional: append(facts.Kinds(), modelsource.Kind), Transform: strip,
	}, nil
}

// fixedMapper is a mapper of the kinds that the API server had.
type fixedMapper struct{ meta.RESTMapper }

// Reset does nothing, because a list asks once.
func (fixedMapper) Reset() {}

// explainList returns why the cluster could not be read, and what to do.
func explainList(host string, errs []*watch.ListError) error {
	var forbidden []string
	for _, e := range errs {
		switch {
		case apierrors.IsForbidden(e):
			forbidden = append(forbidden, e.Resource.GroupResource().String())
		case apierrors.IsUnauthorized(e):
			return fmt.Errorf("the API server at %s does not accept the credentials: %w; check the user of the context", host, e.Err)
		case errors.Is(e, context.Canceled):
			return errors.New("interrupted")
		}
	}
	if len(forbidden) > 0 {
		slices.Sort(forbidden)
		forbidden = slices.Compact(forbidden)
		return fmt.Errorf("the user of the context may not list %s in all namespaces; a ClusterRole with the verb list for them allows it", explain.List(forbidden, len(forbidden)))
	}
	if e := errs[0]; apierrors.ReasonForError(e) != "" {
		return e
	}
	return fmt.Errorf("the API server at %s does not answer: %w; check --kubeconfig and --context", host, errs[0].Err)
}

// noteQueueKind says that queues cannot exist if the API server does not have the kind.
func (p *program) noteQueueKind(w *world) {
	if slices.Contains(w.missing, schema.GroupKind{Group: v1alpha1.Group, Kind: v1alpha1.KindQueue}) {
		fmt.Fprintf(p.answers.Stderr(), "note: the API server does not have the kind Queue of %s, so that all pods are in the queue default; the CustomResourceDefinition of Queue adds it\n", v1alpha1.Group)
	}
}

// pods returns the pods of the cluster.
func (w *world) pods() []*corev1.Pod {
	var out []*corev1.Pod
	for _, e := range w.objects {
		if pod, isPod := e.Object.(*corev1.Pod); isPod {
			out = append(out, pod)
		}
	}
	return out
}

// noteText returns the note as a sentence about its object.
func noteText(n *feed.Note) string {
	object := strings.ToLower(n.Kind) + "/" + n.Name
	if n.Namespace != "" {
		object = strings.ToLower(n.Kind) + "/" + n.Namespace + "/" + n.Name
	}
	text := n.Message
	if n.Detail != "" {
		text += " (" + n.Detail + ")"
	}
	if path := n.Path.String(); path != "" {
		text = path + ": " + text
	}
	return object + ": " + text
}
