package feed

import (
	"strings"
	"testing"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/dra/dratest"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// fixture is a Feed whose facts are applied to a State.
type fixture struct {
	t interface {
		Helper()
		Fatalf(string, ...any)
	}
	feed  *Feed
	state *cluster.State
	notes []Note
}

var testOptions = Options{SchedulerNames: []string{"berth"}, Match: dratest.Match}

func newFixture(t *testing.T) *fixture {
	return &fixture{t: t, feed: New(testOptions), state: cluster.NewState()}
}

func (x *fixture) apply(changes []cluster.Change, notes []Note) {
	x.t.Helper()
	for _, c := range changes {
		if err := x.state.Apply(c); err != nil {
			x.t.Fatalf("%s %+v: %v", c.Kind(), c, err)
		}
	}
	x.notes = append(x.notes, notes...)
}

// put delivers an object.
func (x *fixture) put(o metav1.Object) {
	x.t.Helper()
	switch o := o.(type) {
	case *corev1.Node:
		x.apply(x.feed.PutNode(o))
	case *corev1.Pod:
		x.apply(x.feed.PutPod(o))
	case *v1alpha1.Queue:
		x.apply(x.feed.PutQueue(o))
	case *policyv1.PodDisruptionBudget:
		x.apply(x.feed.PutPodDisruptionBudget(o))
	case *schedulingv1.PriorityClass:
		x.apply(x.feed.PutPriorityClass(o), nil)
	case *corev1.Namespace:
		x.apply(x.feed.PutNamespace(o), nil)
	case *schedulingv1alpha2.PodGroup:
		x.apply(x.feed.PutPodGroup(o))
	case *batchv1.Job:
		x.apply(x.feed.PutJob(o))
	case *resourcev1.ResourceSlice:
		x.apply(x.feed.PutResourceSlice(o))
	case *resourcev1.DeviceClass:
		x.apply(x.feed.PutDeviceClass(o))
	case *resourcev1.ResourceClaim:
		x.apply(x.feed.PutResourceClaim(o))
	case *unstructured.Unstructured:
		x.apply(x.feed.PutGroup(o))
	default:
		x.t.Fatalf("no method for %T", o)
	}
}

// remove delivers the deletion of an object.
func (x *fixture) remove(o metav1.Object) {
	x.t.Helper()
	name := nameOf(&metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName()})
	switch o := o.(type) {
	case *corev1.Node:
		x.apply(x.feed.DeleteNode(o.Name, o.UID), nil)
	case *corev1.Pod:
		x.apply(x.feed.DeletePod(name, o.UID), nil)
	case *v1alpha1.Queue:
		x.apply(x.feed.DeleteQueue(o.Name, o.UID), nil)
	case *policyv1.PodDisruptionBudget:
		x.apply(x.feed.DeletePodDisruptionBudget(name, o.UID), nil)
	case *schedulingv1.PriorityClass:
		x.apply(x.feed.DeletePriorityClass(o.Name, o.UID), nil)
	case *corev1.Namespace:
		x.apply(x.feed.DeleteNamespace(o.Name, o.UID), nil)
	case *schedulingv1alpha2.PodGroup:
		x.apply(x.feed.DeletePodGroup(name, o.UID), nil)
	case *batchv1.Job:
		x.apply(x.feed.DeleteJob(name, o.UID), nil)
	case *resourcev1.ResourceSlice:
		x.apply(x.feed.DeleteResourceSlice(o.Name, o.UID))
	case *resourcev1.DeviceClass:
		x.apply(x.feed.DeleteDeviceClass(o.Name, o.UID))
	case *resourcev1.ResourceClaim:
		x.apply(x.feed.DeleteResourceClaim(name, o.UID))
	case *unstructured.Unstructured:
		x.apply(x.feed.DeleteGroup(o.GroupVersionKind().GroupKind(), name, o.GetUID()), nil)
	default:
		x.t.Fatalf("no method for %T", o)
	}
}

// decode reads the manifests, which are separated by lines with "---".
func decode(t interface {
	Helper()
	Fatalf(string, ...any)
}, text string) []metav1.Object {
	t.Helper()
	var out []metav1.Object
	for _, document := range strings.Split(text, "\n---\n") {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			t.Fatalf("%v", err)
		}
		var o metav1.Object
		switch kind.APIVersion + " " + kind.Kind {
		case "v1 Node":
			o = &corev1.Node{}
		case "v1 Pod":
			o = &corev1.Pod{}
		case "v1 Namespace":
			o = &corev1.Namespace{}
		case "berth.dev/v1alpha1 Queue":
			o = &v1alpha1.Queue{}
		case "policy/v1 PodDisruptionBudget":
			o = &policyv1.PodDisruptionBudget{}
		case "scheduling.k8s.io/v1 PriorityClass":
			o = &schedulingv1.PriorityClass{}
		case "scheduling.k8s.io/v1alpha2 PodGroup":
			o = &schedulingv1alpha2.PodGroup{}
		case "batch/v1 Job":
			o = &batchv1.Job{}
		case "resource.k8s.io/v1 ResourceSlice":
			o = &resourcev1.ResourceSlice{}
		case "resource.k8s.io/v1 DeviceClass":
			o = &resourcev1.DeviceClass{}
		case "resource.k8s.io/v1 ResourceClaim":
			o = &resourcev1.ResourceClaim{}
		default:
			o = &unstructured.Unstructured{}
		}
		if err := yaml.Unmarshal([]byte(document), o); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		out = append(out, o)
	}
	return out
}

// putAll delivers the manifests in order.
func (x *fixture) putAll(text string) {
	x.t.Helper()
	for _, o := range decode(x.t, text) {
		x.put(o)
	}
}

// failer is a test, or a test of a property.
type failer interface {
	Helper()
	Fatalf(string, ...any)
}

// withoutDemand returns a copy of the State that has not counted requests.
func withoutDemand(t failer, s *cluster.State) *cluster.State {
	t.Helper()
	sn := s.Snapshot()
	sn.Demand = cluster.Demand{}
	out, err := sn.State()
	if err != nil {
		t.Fatalf("%v", err)
	}
	return out
}

// same fails if the States have different digests, apart from how often something was requested,
// which depends on the order of facts.
func same(t failer, got, want *cluster.State) {
	t.Helper()
	got, want = withoutDemand(t, got), withoutDemand(t, want)
	if got.Digest() != want.Digest() {
		t.Fatalf("the States differ:\n%s", cluster.Difference(got.Lines(), want.Lines()))
	}
}
