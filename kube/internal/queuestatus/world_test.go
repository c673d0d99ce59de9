package queuestatus

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/internal/live"
	"github.com/berth-project/berth/kube/internal/controlplane"
	"github.com/berth-project/berth/kube/internal/crdtest"
	"github.com/berth-project/berth/plugins/standard"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// world is an API server, and a scheduler that reads queues from it.
type world struct {
	*testing.T
	client  dynamic.Interface
	queues  dynamic.ResourceInterface
	leader  *live.Leader
	feed    *feed.Feed
	invalid map[string]Invalid
}

func newWorld(t *testing.T, cp *controlplane.ControlPlane) *world {
	t.Helper()
	client, err := dynamic.NewForConfig(cp.Config())
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(standard.Registry(), standard.Profile())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		T: t, client: client, queues: client.Resource(Resource), invalid: map[string]Invalid{},
		leader: live.NewLeader(live.Options{State: cluster.NewState(), Engine: e}), feed: feed.New(feed.Options{}),
	}
	t.Cleanup(func() {
		if err := w.queues.DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil && !strings.Contains(err.Error(), "could not find the requested resource") {
			t.Error(err)
		}
	})
	return w
}

func (w *world) apply(changes ...cluster.Change) {
	w.Helper()
	for _, c := range changes {
		if err := w.leader.Apply(c); err != nil {
			w.Fatal(err)
		}
	}
}

// create creates a queue and returns it.
func (w *world) create(name, fields string) *unstructured.Unstructured {
	w.Helper()
	u := crdtest.Object(w, "apiVersion: berth.dev/v1alpha1\nkind: Queue\nmetadata: {name: "+name+"}\n"+fields)
	out, err := w.queues.Create(w.Context(), u, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		w.Fatal(err)
	}
	return out
}

// sync reports all queues to the State, as informers do.
func (w *world) sync() {
	w.Helper()
	list, err := w.queues.List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	for i := range list.Items {
		o := crdtest.Queue(w, &list.Items[i])
		changes, notes := w.feed.PutQueue(o)
		w.apply(changes...)
		for _, n := range notes {
			w.invalid[o.Name] = Invalid{feed.Revision(&o.ObjectMeta), n.Path.String() + ": " + n.Message}
		}
	}
}

// read returns the input of a Writer.
func (w *world) read() (Input, error) {
	shares, err := w.leader.Follower().QueueShares(0)
	return Input{shares, w.invalid}, err
}

func (w *world) writer() *Writer {
	return New(Options{Client: w.client, Read: w.read, Held: func() bool { return true }, Report: func(err error) { w.Errorf("reported: %v", err) }})
}

// pass makes one pass, which must succeed.
func (w *world) pass(writer *Writer) {
	w.Helper()
	if err := writer.write(w.Context()); err != nil {
		w.Fatal(err)
	}
}

func (w *world) get(name string) *v1alpha1.Queue {
	w.Helper()
	u, err := w.queues.Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return crdtest.Queue(w, u)
}

// job reports a job that requests devices, and that may be evicted.
func (w *world) job(name, queue string, devices int) {
	w.Helper()
	w.apply(cluster.JobPut{Job: *enginetest.Job(name).Queue(queue).CPU(1000, "1Gi").Devices(devices).Preemptible().Build()})
}

func (w *world) session() {
	w.Helper()
	if _, err := w.leader.Run(engine.Options{Now: int64(time.Second)}); err != nil {
		w.Fatal(err)
	}
}
