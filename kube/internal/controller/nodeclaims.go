package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/kube/internal/facts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// nodeClaimKind is the kind of the objects by which Karpenter is asked for a node.
var nodeClaimKind = schema.GroupKind{Group: "karpenter.sh", Kind: "NodeClaim"}

var nodeClaims = schema.GroupVersionResource{Group: nodeClaimKind.Group, Version: nodeClaimVersion, Resource: "nodeclaims"}

const nodeClaimVersion = "v1"

// versions returns the versions in which kinds are read.
func versions() map[schema.GroupKind]string {
	out := facts.Versions()
	out[nodeClaimKind] = nodeClaimVersion
	return out
}

// The conditions of a NodeClaim, in the order in which they become true.
const (
	launched    = "Launched"
	registered  = "Registered"
	initialized = "Initialized"
)

// awaiting is the reason of conditions that Karpenter has not looked at yet.
const awaiting = "AwaitingReconciliation"

// claim is a NodeClaim that exists.
type claim struct {
	name         string
	uid          types.UID
	model        string // the value of the label berth.dev/model
	created      time.Time
	deleting     bool
	requirements map[string]string // the labels that its node must have, with one value each
	node         string            // the name of its node; "" until the node has joined the cluster
	providerID   string
	conditions   []metav1.Condition
}

// claimObject has the fields of a NodeClaim that are read.
type claimObject struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Requirements []corev1.NodeSelectorRequirement `json:"requirements"`
	} `json:"spec"`
	Status struct {
		NodeName   string             `json:"nodeName"`
		ProviderID string             `json:"providerID"`
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// newClaim reads a NodeClaim.
func newClaim(o *unstructured.Unstructured) (*claim, error) {
	var x claimObject
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &x); err != nil {
		return nil, fmt.Errorf("NodeClaim %s: %w", o.GetName(), err)
	}
	c := &claim{
		name: x.Name, uid: x.UID, model: x.Labels[feed.LabelModel], created: x.CreationTimestamp.Time, deleting: x.DeletionTimestamp != nil,
		requirements: map[string]string{}, node: x.Status.NodeName, providerID: x.Status.ProviderID, conditions: x.Status.Conditions,
	}
	for _, r := range x.Spec.Requirements {
		if r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1 {
			c.requirements[r.Key] = r.Values[0]
		}
	}
	return c, nil
}

// condition returns a condition of the claim. Its status is Unknown if the claim does not have it.
func (c *claim) condition(kind string) metav1.Condition {
	for _, x := range c.conditions {
		if x.Type == kind {
			return x
		}
	}
	return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown}
}

// hasNode reports whether the claim has had a node in the cluster.
func (c *claim) hasNode() bool {
	return c.node != "" || c.condition(registered).Status == metav1.ConditionTrue
}

// stage returns the last condition that is true, as a text.
func (c *claim) stage() string {
	out := "not launched"
	for _, kind := range []string{launched, registered, initialized} {
		if c.condition(kind).Status != metav1.ConditionTrue {
			break
		}
		out = strings.ToLower(kind)
	}
	return out
}

// failure returns the condition that says why the provisioner cannot create the node; nil if there is
// none. Karpenter sets Launched to Unknown, with a reason, while it tries again.
func (c *claim) failure() *metav1.Condition {
	for _, kind := range []string{launched, registered, initialized} {
		x := c.condition(kind)
		tries := kind == launched && x.Status == metav1.ConditionUnknown && x.Reason != "" && x.Reason != awaiting
		if x.Status == metav1.ConditionFalse || tries {
			return &x
		}
		if x.Status != metav1.ConditionTrue {
			return nil
		}
	}
	return nil
}

// trouble is what is remembered about NodeClaims of a model that ended without a node.
type trouble struct {
	instanceType string
	failures     int  // rounds of creations in which one failed, since the last success
	counted      bool // the failures of this round are counted
	claim        string
	reason       string
	message      string
	next         time.Time // when NodeClaims are created again
}

// The time before NodeClaims are created again after one has failed. It is doubled with each
// failure.
const (
	firstPause = 5 * time.Second
	lastPause  = 5 * time.Minute
)

const noReason = "the provisioner has deleted it before it had a node, and has given no reason; see the events of NodeClaims (kubectl get events -A --field-selector involvedObject.kind=NodeClaim)"

// fail notes that the claim has ended without a node.
func (t *trouble) fail(c *claim, now time.Time) {
	t.claim, t.reason, t.message = c.name, "", noReason
	if x := c.failure(); x != nil {
		t.reason, t.message = x.Reason, x.Message
	} else if c.condition(launched).Status == metav1.ConditionTrue {
		t.message = "it was deleted before its node had joined the cluster"
	}
	if !t.counted {
		t.failures, t.counted = t.failures+1, true
		t.next = now.Add(min(firstPause<<min(t.failures-1, 10), lastPause))
	}
}

// claimTable has all NodeClaims, and what nodes say about theirs.
type claimTable struct {
	served   bool // the API server has the kind, and all NodeClaims are known
	byName   map[string]*claim
	troubles map[string]*trouble // by the label of the model
	removed  map[types.UID]bool  // the claims whose deletion was requested here
	nodes    map[string]nodeFact
}

// nodeFact is what a node says about its NodeClaim.
type nodeFact struct {
	uid        types.UID
	claim      types.UID // the owner; "" if there is none
	providerID string
}

func newClaimTable() claimTable {
	return claimTable{byName: map[string]*claim{}, troubles: map[string]*trouble{}, removed: map[types.UID]bool{}, nodes: map[string]nodeFact{}}
}

// forgetTroubles forgets which claims have failed. A process that did not lead cannot tell a claim
// that has failed from one that the leader has deleted.
func (w *World) forgetTroubles() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.claims.troubles)
}

// keepNode notes which NodeClaim the node belongs to. A NodeClaim names its node later.
func (t *claimTable) keepNode(n *corev1.Node, deleted bool) {
	if deleted {
		if t.nodes[n.Name].uid == n.UID {
			delete(t.nodes, n.Name)
		}
		return
	}
	f := nodeFact{uid: n.UID, providerID: n.Spec.ProviderID}
	for _, o := range n.OwnerReferences {
		if o.Kind == nodeClaimKind.Kind && strings.HasPrefix(o.APIVersion, nodeClaimKind.Group+"/") {
			f.claim = o.UID
		}
	}
	t.nodes[n.Name] = f
}

// keep notes a NodeClaim.
func (t *claimTable) keep(o *unstructured.Unstructured, deleted bool, now time.Time) error {
	c, err := newClaim(o)
	if err != nil {
		return err
	}
	was := t.byName[c.name]
	if was != nil && was.uid != c.uid && deleted {
		return nil // another NodeClaim has the name now
	}
	known := was != nil && was.uid == c.uid
	switch ends := deleted || c.deleting; {
	case c.model == "":
	case ends && known && !was.deleting && !c.hasNode() && !t.removed[c.uid]:
		t.troubleOf(c.model, c.requirements[corev1.LabelInstanceTypeStable]).fail(c, now)
	case !ends && c.hasNode() && !(known && was.hasNode()):
		delete(t.troubles, c.model)
	}
	if !deleted {
		t.byName[c.name] = c
		return nil
	}
	delete(t.byName, c.name)
	delete(t.removed, c.uid)
	return nil
}

// troubleOf returns what is remembered about the claims of a model. With another instance type,
// nothing is.
func (t *claimTable) troubleOf(model, instanceType string) *trouble {
	x := t.troubles[model]
	if x == nil || x.instanceType != instanceType {
		x = &trouble{instanceType: instanceType}
		t.troubles[model] = x
	}
	return x
}

// of returns the claims of each model by its label, the oldest first.
func (t *claimTable) of() map[string][]*claim {
	out := map[string][]*claim{}
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		if c := t.byName[name]; c.model != "" {
			out[c.model] = append(out[c.model], c)
		}
	}
	for _, list := range out {
		slices.SortStableFunc(list, func(a, b *claim) int { return a.created.Compare(b.created) })
	}
	return out
}

// claimsOfNodes returns the claim of each node that belongs to one, by the name of the node, and the
// node of each claim.
func (t *claimTable) claimsOfNodes() (byNode map[string]*claim, nodes map[*claim]string) {
	byNode, nodes = map[string]*claim{}, map[*claim]string{}
	byUID, byProvider := map[types.UID]*claim{}, map[string]*claim{}
	for _, c := range t.byName { // the order has no effect: the keys are unique
		byUID[c.uid] = c
		if c.providerID != "" {
			byProvider[c.providerID] = c
		}
		if c.node != "" {
			byNode[c.node], nodes[c] = c, c.node
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.nodes)) {
		f := t.nodes[name]
		c := byUID[f.claim]
		if c == nil && f.providerID != "" {
			c = byProvider[f.providerID]
		}
		if c != nil && byNode[name] == nil && nodes[c] == "" {
			byNode[name], nodes[c] = c, name
		}
	}
	return byNode, nodes
}
