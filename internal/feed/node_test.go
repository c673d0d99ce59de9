package feed

import (
	"strconv"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestNodes(t *testing.T) {
	version := func(revision string, change func(*corev1.Node)) *corev1.Node {
		n := decode(t, testNode)[0].(*corev1.Node)
		n.ResourceVersion = revision
		change(n)
		return n
	}
	notReady := func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	other := func(n *corev1.Node) { n.UID = "node-2" }
	asIs := func(*corev1.Node) {}
	for name, c := range map[string]struct {
		versions      []*corev1.Node
		phase         cluster.Phase
		unschedulable bool
	}{
		"ready":                         {[]*corev1.Node{version("10", asIs)}, "", false},
		"not ready later":               {[]*corev1.Node{version("10", asIs), version("11", notReady)}, "NOT_READY", false},
		"ready again":                   {[]*corev1.Node{version("10", notReady), version("11", asIs)}, "", false},
		"an old version arrives late":   {[]*corev1.Node{version("11", asIs), version("10", notReady)}, "", false},
		"revisions are numbers":         {[]*corev1.Node{version("9", asIs), version("10", cordoned)}, "", true},
		"a version that is no number":   {[]*corev1.Node{version("10", asIs), version("x", cordoned)}, "", true},
		"another node of the same name": {[]*corev1.Node{version("10", notReady), version("11", other)}, "", false},
		"the earlier node arrives late": {[]*corev1.Node{version("10", asIs), version("11", other), version("12", cordoned)}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			x := newFixture(t)
			for _, n := range c.versions {
				x.put(n)
			}
			n := x.state.Node("gpu-1")
			if n.Phase != c.phase || n.Unschedulable != c.unschedulable || len(n.Devices) != 4 {
				t.Errorf("phase %q, unschedulable %v, %d devices", n.Phase, n.Unschedulable, len(n.Devices))
			}
		})
	}
}

func TestNodeThatIsDeleted(t *testing.T) {
	x := newFixture(t)
	x.putAll(testNode)
	x.apply(x.feed.DeleteNode("gpu-1", "another"), nil)
	if x.state.Node("gpu-1") == nil {
		t.Fatal("the deletion of another node removed the node")
	}
	x.apply(x.feed.DeleteNode("gpu-1", "node-1"), nil)
	x.putAll(testNode) // a late repeat
	same(t, x.state, cluster.NewState())
}

func TestInvalidQueues(t *testing.T) {
	for name, c := range map[string]struct{ queue, want string }{
		"its own parent":          {"metadata: {name: team, resourceVersion: \"2\"}\nspec: {parent: team}", "its own parent"},
		"below the default queue": {"metadata: {name: team, resourceVersion: \"2\"}\nspec: {parent: default}", "below the default queue"},
		"default below another":   {"metadata: {name: default, resourceVersion: \"2\"}\nspec: {parent: team}", "at the top"},
		"unknown tier":            {"metadata: {name: team, resourceVersion: \"2\"}\nspec: {tier: Gold}", "unknown value"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newFixture(t)
			x.putAll("apiVersion: berth.dev/v1alpha1\nkind: Queue\nmetadata: {name: team, resourceVersion: \"1\"}")
			if x.state.Queue("team") == nil {
				t.Fatal("the valid queue is missing")
			}
			x.putAll("apiVersion: berth.dev/v1alpha1\nkind: Queue\n" + c.queue)
			if len(x.notes) == 0 || x.notes[0].Severity != convert.Invalid || !strings.Contains(x.notes[0].Message, c.want) {
				t.Errorf("notes %+v, want %q", x.notes, c.want)
			}
		})
	}
}

// TestBuriedUIDsAreBounded deletes more objects than are remembered.
func TestBuriedUIDsAreBounded(t *testing.T) {
	v := newVersions()
	for i := range 3 * maxBuried {
		m := metav1.ObjectMeta{Name: "a", UID: types.UID(strconv.Itoa(i))}
		if isNew, _ := v.admit(kindPod, &m); !isNew {
			t.Fatalf("object %d is not new", i)
		}
		if !v.remove(kindPod, nameOf(&m), m.UID) {
			t.Fatalf("object %d is not known", i)
		}
		if isNew, _ := v.admit(kindPod, &m); isNew {
			t.Fatalf("object %d came back", i)
		}
	}
	if v.buried.Len() != maxBuried || len(v.known) != 0 {
		t.Errorf("%d are remembered, %d are known", v.buried.Len(), len(v.known))
	}
}
