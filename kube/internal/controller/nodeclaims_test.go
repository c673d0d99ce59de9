package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/kube/internal/watch"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

const instanceType = "Standard_NC24ads_A100_v4"

// claimWorld is a World with a clock that tests set.
type claimWorld struct {
	*World
	t   testing.TB
	now time.Time
}

func newClaimWorld(t testing.TB) *claimWorld {
	w := &claimWorld{t: t, now: time.Unix(1000, 0), World: newWorld(t)}
	w.options.Clock = func() time.Time { return w.now }
	w.setServed(true)
	return w
}

func (w *claimWorld) put(objects ...any)  { w.send(false, objects) }
func (w *claimWorld) drop(objects ...any) { w.send(true, objects) }

func (w *claimWorld) send(deleted bool, objects []any) {
	w.t.Helper()
	for _, o := range objects {
		if errs := w.Take([]watch.Event{{Object: o, Deleted: deleted}}); len(errs) > 0 {
			w.t.Fatal(errs)
		}
	}
}

// typed returns a model of which each replica takes one node of the instance type.
func typed(name string, replicas int, more ...string) *unstructured.Unstructured {
	return object(fmt.Sprintf(`apiVersion: berth.dev/v1alpha1
kind: Model
metadata: {namespace: ml, name: %s, uid: %s}
spec:
  replicas: %d
  backend: vllm
  source: {repository: example/m}
  memory: {total: 40Gi}
  placement: {unit: Node, instanceType: %s%s}
`, name, name, replicas, instanceType, strings.Join(more, "")))
}

func object(text string) *unstructured.Unstructured {
	var o unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		panic(err)
	}
	return &o
}

// claimFor returns a NodeClaim of a model. Each condition is written as Launched=True:Reason.
func claimFor(model, name, node string, conditions ...string) *unstructured.Unstructured {
	var list []any
	for _, c := range conditions {
		text, reason, _ := strings.Cut(c, ":")
		kind, status, _ := strings.Cut(text, "=")
		list = append(list, map[string]any{"type": kind, "status": status, "reason": reason, "message": "a message", "lastTransitionTime": "2026-01-01T00:00:00Z"})
	}
	o := object(fmt.Sprintf(`apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: %s, uid: %s, labels: {berth.dev/model: ml_%s}, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [%s]}]}
`, name, name, model, instanceType))
	status := map[string]any{"conditions": list}
	if node != "" {
		status["nodeName"] = node
	}
	o.Object["status"] = status
	return o
}

func deleting(o *unstructured.Unstructured) *unstructured.Unstructured {
	now := metav1.Unix(900, 0)
	o.SetDeletionTimestamp(&now)
	return o
}

// a100 returns a node of the instance type.
func a100(name string, edit ...func(*corev1.Node)) *corev1.Node {
	n := gpuNode(name, "NVIDIA-A100-80GB-PCIe", 1, 81920)
	n.Labels[corev1.LabelInstanceTypeStable] = instanceType
	for _, e := range edit {
		e(n)
	}
	return n
}

// createdFor labels a node as one that was created for a model.
func createdFor(model string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels["berth.dev/model"] = "ml_" + model }
}

func notReady(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }

func noDevices(n *corev1.Node) {
	delete(n.Status.Allocatable, "nvidia.com/gpu")
	n.Labels = map[string]string{corev1.LabelInstanceTypeStable: instanceType}
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

// usesNode returns a pod that holds the device of a node.
func usesNode(node string) *corev1.Pod {
	amount := corev1.ResourceList{"nvidia.com/gpu": gpuNode("", "", 1, 1).Status.Allocatable["nvidia.com/gpu"]}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "p-" + node, UID: types.UID("p-" + node), ResourceVersion: "1"},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Limits: amount, Requests: amount}}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

// read returns what is planned for a model: what is created and removed, and the condition.
func (w *claimWorld) read(name string) (create, remove []string, condition string) {
	w.t.Helper()
	plans, err := w.plans()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, p := range plans {
		if p.key.Name != name {
			continue
		}
		if p.invalid != nil {
			w.t.Fatal(p.invalid)
		}
		x := p.claims
		for _, c := range x.remove {
			remove = append(remove, c.name)
		}
		slices.Sort(remove)
		if x.provision == nil {
			return x.create, remove, ""
		}
		reason, message := x.report()
		return x.create, remove, reason + ": " + message
	}
	w.t.Fatalf("there is no plan for %s", name)
	return nil, nil, ""
}

// names returns the names of the NodeClaims of ml/chat with the numbers.
func names(numbers ...int) []string {
	var out []string
	for _, n := range numbers {
		out = append(out, fmt.Sprintf("chat-fd81725b-%d", n))
	}
	return out
}

func TestClaimPlans(t *testing.T) {
	first := names(0)[0]
	of := "nodes of " + instanceType + ", 1 for each replica; "
	tests := map[string]struct {
		objects        []any
		create, remove []string
		condition      string
	}{
		"nothing exists": {
			[]any{typed("chat", 3)}, names(0, 1, 2), nil,
			"WaitingForNodes: 3 " + of + "0 ready.",
		},
		"nodes that exist are used first": {
			[]any{typed("chat", 3), a100("a"), a100("b", createdFor("other"))}, names(0), nil,
			"WaitingForNodes: 3 " + of + "2 ready.",
		},
		"claims without a node count": {
			[]any{typed("chat", 3), claimFor("chat", first, ""), claimFor("chat", "by-hand", "", "Launched=True"), claimFor("other", "x", "")}, names(1), nil,
			"WaitingForNodes: 3 " + of + "0 ready, 2 claimed (1 launched, 1 not launched).",
		},
		"a node counts once": {
			[]any{typed("chat", 2), claimFor("chat", first, "a", "Launched=True", "Registered=True", "Initialized=True"), a100("a", createdFor("chat"))}, names(1), nil,
			"WaitingForNodes: 2 " + of + "1 ready.",
		},
		"a node that its claim does not name yet counts once": {
			[]any{typed("chat", 2), claimFor("chat", first, ""), claimFor("chat", names(1)[0], ""), a100("a", createdFor("chat"), ownedBy(first))}, nil, nil,
			"WaitingForNodes: 2 " + of + "1 ready, 1 claimed (1 not launched).",
		},
		"a node without devices is on its way": {
			[]any{typed("chat", 1), claimFor("chat", first, "a", "Launched=True", "Registered=True"), a100("a", noDevices)}, nil, nil,
			"WaitingForNodes: 1 node of " + instanceType + ", 1 for each replica; 0 ready, 1 claimed (1 registered).",
		},
		"a node that is not ready is waited for": {
			[]any{typed("chat", 1), claimFor("chat", first, "a", "Launched=True", "Registered=True", "Initialized=True"), a100("a", notReady)}, nil, nil,
			"WaitingForNodes: 1 node of " + instanceType + ", 1 for each replica; 0 ready, 1 claimed (1 initialized). Node a has been created, and cannot be used yet: it is not ready, or has no labels or resources of devices; see the pods of the device plugin and of GPU Feature Discovery.",
		},
		"a cordoned node is replaced": {
			[]any{typed("chat", 1), claimFor("chat", first, "a", "Launched=True", "Registered=True"), a100("a", cordoned)}, names(1), nil,
			"WaitingForNodes: 1 node of " + instanceType + ", 1 for each replica; 0 ready.",
		},
		"a node that others use is replaced": {
			[]any{typed("chat", 1), claimFor("chat", first, "a"), a100("a", createdFor("chat")), usesNode("a")}, names(1), nil,
			"WaitingForNodes: 1 node of " + instanceType + ", 1 for each replica; 0 ready.",
		},
		"a node whose claim is deleted is replaced": {
			[]any{typed("chat", 1), deleting(claimFor("chat", first, "a")), a100("a", createdFor("chat"))}, names(1), nil,
			"WaitingForNodes: 1 node of " + instanceType + ", 1 for each replica; 0 ready.",
		},
		"nodes in excess": {
			[]any{typed("chat", 1), claimFor("chat", first, "a"), claimFor("chat", names(1)[0], "b"), a100("a", createdFor("chat")), a100("b", createdFor("chat"))}, nil, names(1),
			"NodesReady: 1 node of " + instanceType + ", 1 for each replica; 1 ready.",
		},
		"nodes in excess that are used stay": {
			[]any{typed("chat", 0), claimFor("chat", first, "a"), a100("a", createdFor("chat")), usesNode("a")}, nil, nil,
			"NodesReady: 0 nodes of " + instanceType + ", 1 for each replica; 0 ready.",
		},
		"claims in excess": {
			[]any{typed("chat", 1), claimFor("chat", first, ""), claimFor("chat", names(1)[0], ""), claimFor("chat", names(2)[0], "")}, nil, names(1, 2),
			"WaitingForNodes: 1 node of " + instanceType + ", 1 for each replica; 0 ready, 1 claimed (1 not launched).",
		},
		"a failure that the provisioner reports": {
			[]any{typed("chat", 1), claimFor("chat", first, "", "Launched=Unknown:LaunchFailed")}, nil, nil,
			"ProvisionerFailed: 1 node of " + instanceType + ", 1 for each replica; 0 ready, 1 claimed (1 not launched). NodeClaim " + first + ": LaunchFailed: a message.",
		},
		"another selector": {
			[]any{typed("chat", 1, ", nodeSelector: {pool: x}"), claimFor("chat", first, ""), otherPool(claimFor("chat", names(1)[0], ""))}, nil, names(1),
			"WaitingForNodes: 1 node of " + instanceType + ", 1 for each replica; 0 ready, 1 claimed (1 not launched).",
		},
		"a claim that another model does not need": {
			[]any{typed("chat", 1), typed("other", 0), claimFor("other", "x", "")}, nil, nil,
			"WaitingForNodes: 1 node of " + instanceType + ", 1 for each replica; 0 ready, 1 claimed (1 not launched).",
		},
		"no instance type": {
			[]any{untyped(typed("chat", 1)), claimFor("chat", first, ""), claimFor("chat", names(1)[0], "a"), a100("a", createdFor("chat")), usesNode("a")}, nil, names(0), "",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newClaimWorld(t)
			w.put(tt.objects...)
			create, remove, condition := w.read("chat")
			got, want := []any{create, remove, condition}, []any{tt.create, tt.remove, tt.condition}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("created, removed and condition (-want +got):\n%s", d)
			}
		})
	}
}

// ownedBy makes a NodeClaim the owner of a node, as Karpenter does.
func ownedBy(claim string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.OwnerReferences = []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: claim, UID: types.UID(claim)}}
	}
}

func otherPool(o *unstructured.Unstructured) *unstructured.Unstructured {
	_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{"key": "pool", "operator": "In", "values": []any{"y"}}}, "spec", "requirements")
	return o
}

func untyped(o *unstructured.Unstructured) *unstructured.Unstructured {
	unstructured.RemoveNestedField(o.Object, "spec", "placement", "instanceType")
	return o
}

// TestClaimFailures lets the provisioner delete NodeClaims before they have a node: the pause before
// the next creation is doubled, and ends with a success.
func TestClaimFailures(t *testing.T) {
	w := newClaimWorld(t)
	w.put(typed("chat", 2))
	a, b := names(0)[0], names(1)[0]
	for i, pause := range []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second} {
		create, _, _ := w.read("chat")
		if d := cmp.Diff([]string{a, b}, create); d != "" {
			t.Fatalf("round %d (-want +got):\n%s", i, d)
		}
		w.put(claimFor("chat", a, ""), claimFor("chat", b, ""))
		w.claimTried(&claimPlan{label: "ml_chat"})
		failed := claimFor("chat", a, "", "Launched=False:InsufficientCapacity")
		w.put(failed, deleting(failed.DeepCopy()))
		w.drop(failed, claimFor("chat", b, ""))
		w.now = w.now.Add(pause - time.Millisecond)
		create, _, condition := w.read("chat")
		if create != nil {
			t.Errorf("round %d: %v is created before %s have passed", i, create, pause)
		}
		want := fmt.Sprintf("NodeClaim %s has failed: %s. It is created anew at %s.", b, noReason, w.now.Add(time.Millisecond).UTC().Format(time.RFC3339))
		if !strings.HasPrefix(condition, reasonProvisionerFailed) || !strings.HasSuffix(condition, want) {
			t.Errorf("round %d: %s, want %s", i, condition, want)
		}
		w.now = w.now.Add(time.Millisecond)
	}
	w.put(claimFor("chat", a, "n", "Launched=True", "Registered=True"))
	if create, _, condition := w.read("chat"); len(create) != 1 || !strings.HasPrefix(condition, reasonWaitingForNodes) {
		t.Errorf("after a success, %v is created: %s", create, condition)
	}
	w.claimRemoved(types.UID(b))
	w.put(claimFor("chat", b, ""))
	w.drop(claimFor("chat", b, ""))
	if create, _, _ := w.read("chat"); len(create) != 1 {
		t.Error("a deletion that was requested counts as a failure")
	}
}

// TestMissing checks the conditions without Karpenter and without a node class.
func TestMissing(t *testing.T) {
	w := newClaimWorld(t)
	w.setServed(false)
	w.put(typed("chat", 2), a100("a"))
	create, _, condition := w.read("chat")
	want := "KarpenterMissing: 2 nodes of " + instanceType + ", 1 for each replica; 1 ready. The cluster has no NodeClaims (karpenter.sh/v1), so that no nodes are created. Install Karpenter, or add nodes with the label node.kubernetes.io/instance-type=" + instanceType + "."
	if create != nil || condition != want {
		t.Errorf("%v is created; %s\nwant %s", create, condition, want)
	}
	x := &claimPlan{provision: &model.Provision{Wanted: 1, PerReplica: 1, InstanceType: instanceType}, missing: 1, served: true, noClass: true}
	if reason, message := x.report(); reason != reasonNoNodeClass || !strings.Contains(message, "--node-class") {
		t.Errorf("%s: %s", reason, message)
	}
}

// TestClaimObject checks what is written.
func TestClaimObject(t *testing.T) {
	w := newClaimWorld(t)
	w.put(typed("chat", 1, ", nodeSelector: {pool: x, topology.kubernetes.io/zone: z1}"))
	plans, err := w.plans()
	if err != nil {
		t.Fatal(err)
	}
	got := plans[0].claimObject(plans[0].claims.create[0], NodeClass{"karpenter.k8s.aws", "EC2NodeClass", "default"})
	want := object(`apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata:
  name: chat-fd81725b-0
  labels: {karpenter.sh/nodepool: berth, berth.dev/model: ml_chat, berth.dev/model-namespace: ml, pool: x}
  annotations: {karpenter.sh/do-not-disrupt: "true"}
spec:
  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
  requirements:
  - {key: karpenter.sh/nodepool, operator: In, values: [berth]}
  - {key: kubernetes.io/os, operator: In, values: [linux]}
  - {key: node.kubernetes.io/instance-type, operator: In, values: [Standard_NC24ads_A100_v4]}
  - {key: pool, operator: In, values: [x]}
  - {key: topology.kubernetes.io/zone, operator: In, values: [z1]}
  taints: [{key: sku, value: gpu, effect: NoSchedule}]
  expireAfter: Never
`)
	if d := cmp.Diff(want.Object, got.Object); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	long := &plan{key: types.NamespacedName{Namespace: strings.Repeat("n", 63), Name: strings.Repeat("m.", 31)}}
	if name := claimName(long, 123456); len(name) > 60 || strings.Contains(name, ".") {
		t.Errorf("the name %s has %d characters", name, len(name))
	}
}

func TestParseNodeClass(t *testing.T) {
	for text, want := range map[string]NodeClass{
		"": {}, "karpenter.azure.com/AKSNodeClass/default": {"karpenter.azure.com", "AKSNodeClass", "default"},
	} {
		if got, err := ParseNodeClass(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"default", "a/b", "a//c", "a/b/c/d", "/b/c"} {
		if got, err := ParseNodeClass(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
