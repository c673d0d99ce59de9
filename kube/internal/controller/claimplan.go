package controller

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
)

// Reasons of the condition NodesClaimed.
const (
	reasonNodesReady        = "NodesReady"
	reasonWaitingForNodes   = "WaitingForNodes"
	reasonProvisionerFailed = "ProvisionerFailed"
	reasonKarpenterMissing  = "KarpenterMissing"
	reasonNoNodeClass       = "NodeClassMissing"
)

// claimPlan is what should happen to the NodeClaims of a model.
type claimPlan struct {
	label     string // of the claims
	provision *model.Provision
	own       []*claim // all that exist, the oldest first
	ready     int
	coming    []*claim // whose nodes cannot be used yet, the oldest first
	borrowed  []*claim // of other models that do not need them
	missing   int      // nodes that are neither ready nor claimed
	create    []string // names
	remove    []*claim
	trouble   *trouble // nil if there is none
	waits     bool     // until trouble.next, before more are created
	served    bool     // the cluster has NodeClaims
	noClass   bool     // no node class is configured
	err       error    // why they could not be written
}

// planClaims computes what should happen to the NodeClaims of all models.
func (w *World) planClaims(plans []*plan) {
	t := &w.claims
	own, labels, at := t.of(), map[string]bool{}, w.sites()
	for _, p := range plans {
		labels[model.NodeLabel(p.id())] = true
		if v := p.answer.Provision; v != nil {
			for _, node := range v.Nodes {
				at.users[node] = true
			}
		}
	}
	maps.DeleteFunc(t.troubles, func(label string, _ *trouble) bool { return !labels[label] })
	for _, p := range plans {
		if p.invalid == nil {
			label := model.NodeLabel(p.id())
			p.claims = &claimPlan{label: label, provision: p.answer.Provision, own: own[label], served: t.served}
			at.sort(p)
		}
	}
	lendClaims(plans)
	for _, p := range plans {
		if p.claims != nil && p.claims.provision != nil {
			t.nameMissing(p, w.options.Clock())
		}
	}
}

// sites says which claim each node belongs to, and which nodes models use or can use.
type sites struct {
	state   *cluster.State
	byNode  map[string]*claim
	byClaim map[*claim]string
	users   map[string]bool
}

func (w *World) sites() *sites {
	out := &sites{state: w.state, users: map[string]bool{}}
	out.byNode, out.byClaim = w.claims.claimsOfNodes()
	return out
}

// sort finds out which nodes are ready for the model, which of its claims have no node yet, and which
// are not needed. A claim whose node is used by others is none of these.
func (s *sites) sort(p *plan) {
	x, v := p.claims, p.claims.provision
	ready, excess := map[string]bool{}, map[string]bool{}
	if v != nil {
		for _, node := range v.Nodes {
			if c := s.byNode[node]; c == nil || !c.deleting {
				ready[node] = true
			}
		}
		for _, node := range v.Remove {
			excess[node] = true
		}
	}
	x.ready = len(ready)
	for _, c := range x.own {
		node := s.byClaim[c]
		switch {
		case c.deleting || ready[node]:
		case v == nil || !p.describes(c) || excess[node]:
			if s.unused(node) {
				x.remove = append(x.remove, c)
			}
		case !s.users[node] && s.unused(node) && !s.cordoned(node):
			x.coming = append(x.coming, c)
		}
	}
}

// describes reports whether the node of the claim can be one that the model needs now.
func (p *plan) describes(c *claim) bool {
	want := map[string]string{corev1.LabelInstanceTypeStable: p.answer.Provision.InstanceType}
	for k, v := range p.spec.Place.Selector {
		if k != corev1.LabelInstanceTypeStable {
			want[k] = v
		}
	}
	for k, v := range want {
		if have, has := c.requirements[k]; has && have != v {
			return false
		}
	}
	return true
}

// unused reports whether no task holds a device of the node. A node that does not exist is not used.
func (s *sites) unused(node string) bool {
	n := s.state.Node(node)
	return n == nil || !slices.ContainsFunc(n.Devices, func(d cluster.Device) bool { return !d.Idle() })
}

func (s *sites) cordoned(node string) bool {
	n := s.state.Node(node)
	return n != nil && n.Unschedulable
}

// lendClaims lets models whose nodes are missing wait for nodes that were claimed for other models,
// which do not need them because their replicas are on other nodes now. The claims that no model
// needs are removed, the newest first.
func lendClaims(plans []*plan) {
	type spare struct {
		claim *claim
		of    *claimPlan
	}
	pool := map[string][]spare{}
	for _, p := range plans {
		if x := p.claims; x != nil && x.provision != nil {
			need := max(0, x.provision.Wanted-x.ready)
			kept := min(need, len(x.coming))
			for _, c := range x.coming[kept:] {
				pool[p.nodeKey()] = append(pool[p.nodeKey()], spare{c, x})
			}
			x.coming, x.missing = x.coming[:kept], need-kept
		}
	}
	for _, p := range plans {
		if x := p.claims; x != nil && x.missing > 0 {
			key := p.nodeKey()
			n := min(x.missing, len(pool[key]))
			for _, s := range pool[key][:n] {
				x.borrowed = append(x.borrowed, s.claim)
			}
			x.missing, pool[key] = x.missing-n, pool[key][n:]
		}
	}
	for _, key := range slices.Sorted(maps.Keys(pool)) {
		for _, s := range slices.Backward(pool[key]) {
			s.of.remove = append(s.of.remove, s.claim)
		}
	}
}

// nodeKey returns a text that is equal for models that need the same nodes.
func (p *plan) nodeKey() string {
	out := p.answer.Provision.InstanceType
	for _, k := range slices.Sorted(maps.Keys(p.spec.Place.Selector)) {
		out += fmt.Sprintf(" %q=%q", k, p.spec.Place.Selector[k])
	}
	return out
}

// id returns the ID of the model.
func (p *plan) id() string { return convert.ModelID(p.model) }

// nameMissing names the NodeClaims to create: with the lowest numbers that are free. If a creation is
// not known yet, it is tried again with the same name, and fails.
func (t *claimTable) nameMissing(p *plan, now time.Time) {
	x := p.claims
	if known := t.troubles[x.label]; known != nil && known.instanceType == x.provision.InstanceType {
		own := *known
		x.trouble = &own
	}
	if x.waits = x.trouble != nil && now.Before(x.trouble.next); x.waits || !x.served {
		return
	}
	for n := 0; len(x.create) < x.missing; n++ {
		if name := claimName(p, n); t.byName[name] == nil {
			x.create = append(x.create, name)
		}
	}
}

// maxModel is how many characters of the name of the model are in the name of a NodeClaim. Names of
// nodes and machines are made from it, with a limit of 63 characters.
const maxModel = 36

// claimName returns the name of a NodeClaim of the model.
func claimName(p *plan, number int) string {
	sum := sha256.Sum256([]byte(p.key.String()))
	name := strings.ReplaceAll(p.key.Name, ".", "-")
	return fmt.Sprintf("%s-%s-%d", strings.TrimRight(name[:min(len(name), maxModel)], "-"), hex.EncodeToString(sum[:4]), number)
}

// claimCondition sets the condition NodesClaimed.
func (p *plan) claimCondition(out *v1alpha1.ModelStatus, set func(string, bool, string, string)) {
	x := p.claims
	if x == nil || x.provision == nil {
		meta.RemoveStatusCondition(&out.Conditions, v1alpha1.ConditionNodesClaimed)
		return
	}
	reason, message := x.report()
	set(v1alpha1.ConditionNodesClaimed, reason == reasonNodesReady, reason, message)
}

// report returns the reason and the message of the condition NodesClaimed.
func (x *claimPlan) report() (reason, message string) {
	v := x.provision
	figures := v.Figures(x.ready)
	if x.ready >= v.Wanted {
		return reasonNodesReady, figures + "."
	}
	if coming := append(slices.Clone(x.coming), x.borrowed...); len(coming) > 0 {
		figures += fmt.Sprintf(", %d claimed (%s)", len(coming), stages(coming))
	}
	figures += "."
	instead := fmt.Sprintf("or add nodes with the label %s=%s", corev1.LabelInstanceTypeStable, v.InstanceType)
	switch {
	case x.err != nil:
		return reasonWriteFailed, figures + " " + x.err.Error()
	case x.missing > 0 && !x.served:
		return reasonKarpenterMissing, fmt.Sprintf("%s The cluster has no NodeClaims (%s/%s), so that no nodes are created. Install Karpenter, %s.", figures, nodeClaimKind.Group, nodeClaimVersion, instead)
	case x.missing > 0 && x.noClass:
		return reasonNoNodeClass, fmt.Sprintf("%s No NodeClaims are created, because berth-controller has no node class. Start it with --node-class, such as karpenter.k8s.aws/EC2NodeClass/default, %s.", figures, instead)
	}
	if text := x.failureText(); text != "" {
		return reasonProvisionerFailed, figures + " " + text
	}
	return reasonWaitingForNodes, figures + x.remark()
}

// stages returns how many of the claims are at each stage.
func stages(claims []*claim) string {
	var names []string
	count := map[string]int{}
	for _, c := range claims {
		if s := c.stage(); count[s] == 0 {
			names = append(names, s)
		}
		count[c.stage()]++
	}
	for i, name := range names {
		names[i] = fmt.Sprintf("%d %s", count[name], name)
	}
	return strings.Join(names, ", ")
}

// failureText returns what the provisioner says about nodes that it cannot create; "" if it says
// nothing.
func (x *claimPlan) failureText() string {
	var texts []string
	for _, c := range x.coming {
		if f := c.failure(); f != nil {
			texts = append(texts, fmt.Sprintf("NodeClaim %s: %s: %s.", c.name, cmp.Or(f.Reason, f.Type+" is "+string(f.Status)), trimStop(f.Message)))
			break // the others have the same cause as a rule
		}
	}
	if t := x.trouble; t != nil {
		reason := ""
		if t.reason != "" {
			reason = t.reason + ": "
		}
		text := fmt.Sprintf("NodeClaim %s has failed: %s%s.", t.claim, reason, trimStop(t.message))
		if x.waits && x.missing > 0 {
			text += fmt.Sprintf(" It is created anew at %s.", t.next.UTC().Format(time.RFC3339))
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " ")
}

// trimStop returns the text without a full stop at its end.
func trimStop(s string) string { return strings.TrimRight(strings.TrimSpace(s), ".") }

// remark returns what to look at if nodes were created and cannot be used.
func (x *claimPlan) remark() string {
	for _, c := range x.coming {
		if c.stage() == strings.ToLower(initialized) {
			return fmt.Sprintf(" Node %s has been created, and cannot be used yet: it is not ready, or has no labels or resources of devices; see the pods of the device plugin and of GPU Feature Discovery.", cmp.Or(c.node, "of "+c.name))
		}
	}
	return ""
}
