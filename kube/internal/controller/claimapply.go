package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/kube/internal/workload"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// finalizer is the finalizer of models that have NodeClaims. A NodeClaim has no namespace, so that a
// model cannot own it.
const finalizer = "berth.dev/model"

// labelNamespace is the namespace of the model that a NodeClaim was created for.
const labelNamespace = "berth.dev/model-namespace"

// NodeClass is the object that describes the machines of a cloud to Karpenter.
type NodeClass struct{ Group, Kind, Name string }

// ParseNodeClass reads a node class that is written as GROUP/KIND/NAME. "" is none.
func ParseNodeClass(s string) (NodeClass, error) {
	if s == "" {
		return NodeClass{}, nil
	}
	parts := strings.Split(s, "/")
	if len(parts) != 3 || slices.Contains(parts, "") {
		return NodeClass{}, fmt.Errorf("%q: want GROUP/KIND/NAME, such as karpenter.k8s.aws/EC2NodeClass/default", s)
	}
	return NodeClass{parts[0], parts[1], parts[2]}, nil
}

// holdClaims adds the finalizer to a model before it has NodeClaims, and removes it when it has none
// and requests none. It reports true if the model was changed: the next turn continues when the
// watch delivers it.
func (c *Controller) holdClaims(ctx context.Context, p *plan) (changed bool, err error) {
	x := p.claims
	if x == nil {
		return false, nil
	}
	exist := slices.ContainsFunc(x.own, func(c *claim) bool { return !c.deleting })
	has := slices.Contains(p.model.Finalizers, finalizer)
	switch {
	case !has && (exist || len(x.create) > 0 && c.options.NodeClass != (NodeClass{})):
		return true, c.setFinalizers(ctx, p.model, append(slices.Clone(p.model.Finalizers), finalizer))
	case has && x.provision == nil && !exist:
		left, err := c.liveClaims(ctx, x.label)
		if err != nil || len(left) > 0 {
			return false, err
		}
		return true, c.dropFinalizer(ctx, p.model)
	}
	return false, nil
}

// applyClaims removes and creates the NodeClaims of a model.
func (c *Controller) applyClaims(ctx context.Context, p *plan) error {
	x := p.claims
	if x == nil {
		return nil
	}
	var errs []error
	for _, claim := range x.remove {
		errs = append(errs, c.deleteClaim(ctx, claim))
	}
	if x.noClass = c.options.NodeClass == (NodeClass{}); x.noClass {
		x.create = nil
	}
	for _, name := range x.create {
		_, err := c.options.Dynamic.Resource(nodeClaims).Create(ctx, p.claimObject(name, c.options.NodeClass), metav1.CreateOptions{FieldManager: workload.Manager})
		switch {
		case err == nil:
			c.options.World.claimTried(x)
			c.options.Log.Info("A NodeClaim was created.", "model", p.key.String(), "nodeClaim", name)
		case apierrors.IsAlreadyExists(err): // and the watch has not delivered it yet
		case apierrors.IsNotFound(err):
			x.served = false
			return err // tried again, until Karpenter is installed
		default:
			errs = append(errs, err)
		}
	}
	x.err = errors.Join(errs...)
	return x.err
}

// claimTried notes that a NodeClaim was created, so that the next failure counts.
func (w *World) claimTried(x *claimPlan) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.claims.troubles[x.label]; t != nil {
		t.counted = false
	}
}

// deleteClaim requests the deletion of a NodeClaim. Karpenter drains its node and ends the machine.
func (c *Controller) deleteClaim(ctx context.Context, x *claim) error {
	c.options.World.claimRemoved(x.uid)
	err := c.options.Dynamic.Resource(nodeClaims).Delete(ctx, x.name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &x.uid}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // it is gone, or another one has the name
		return nil
	}
	if err == nil {
		c.options.Log.Info("A NodeClaim is deleted, because no replica needs its node.", "nodeClaim", x.name, "node", x.node)
	}
	return err
}

// claimRemoved notes that the deletion of a NodeClaim is no failure of the provisioner.
func (w *World) claimRemoved(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.claims.removed[uid] = true
}

// setServed notes whether NodeClaims are known. It reports true if that has changed.
func (w *World) setServed(served bool) (changed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	changed = w.claims.served != served
	w.claims.served = served
	return changed
}

// liveClaims returns the NodeClaims with the label that the API server has now and that are not being
// deleted. The watch may not have delivered all of them.
func (c *Controller) liveClaims(ctx context.Context, label string) ([]*claim, error) {
	list, err := c.options.Dynamic.Resource(nodeClaims).List(ctx, metav1.ListOptions{LabelSelector: feed.LabelModel + "=" + label})
	if apierrors.IsNotFound(err) {
		return nil, nil // Karpenter is not installed
	}
	if err != nil {
		return nil, err
	}
	var out []*claim
	for i := range list.Items {
		x, err := newClaim(&list.Items[i])
		if err != nil {
			return nil, err
		}
		if !x.deleting {
			out = append(out, x)
		}
	}
	return out, nil
}

// finishModels deletes the NodeClaims of models that are being deleted, and then lets the models go.
// It does not wait until the nodes are gone. It reports true if it must be tried again.
func (c *Controller) finishModels(ctx context.Context) (again bool) {
	for _, m := range c.options.World.ending() {
		if ctx.Err() != nil || !c.options.Held() {
			return true
		}
		if err := c.finishModel(ctx, m); err != nil {
			again = true
			if !apierrors.IsConflict(err) {
				c.options.Log.Warn("The NodeClaims of a model that is deleted could not be deleted.", "model", m.Namespace+"/"+m.Name, "error", err)
			}
		}
	}
	return again
}

func (c *Controller) finishModel(ctx context.Context, m *v1alpha1.Model) error {
	claims, err := c.liveClaims(ctx, model.NodeLabel(convert.ModelID(m)))
	if err != nil {
		return err
	}
	for _, x := range claims {
		if err := c.deleteClaim(ctx, x); err != nil {
			return err
		}
	}
	return c.dropFinalizer(ctx, m)
}

// ending returns the models that are being deleted and have the finalizer, by name.
func (w *World) ending() []*v1alpha1.Model {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*v1alpha1.Model
	for _, key := range w.names() {
		if m := w.models[key]; m.DeletionTimestamp != nil && slices.Contains(m.Finalizers, finalizer) {
			out = append(out, m)
		}
	}
	return out
}

// dropFinalizer removes the finalizer from the model.
func (c *Controller) dropFinalizer(ctx context.Context, m *v1alpha1.Model) error {
	left := slices.DeleteFunc(slices.Clone(m.Finalizers), func(f string) bool { return f == finalizer })
	return ignoreNotFound(c.setFinalizers(ctx, m, left))
}

// setFinalizers writes the finalizers of a model, unless it has changed in the meantime.
func (c *Controller) setFinalizers(ctx context.Context, m *v1alpha1.Model, list []string) error {
	if list == nil {
		list = []string{}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": m.UID, "resourceVersion": m.ResourceVersion, "finalizers": list}})
	if err != nil {
		return err
	}
	_, err = c.options.Dynamic.Resource(models).Namespace(m.Namespace).Patch(ctx, m.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: workload.Manager})
	return err
}

// claimObject returns a NodeClaim of the model.
func (p *plan) claimObject(name string, class NodeClass) *unstructured.Unstructured {
	selector := p.spec.Place.Selector
	d := model.NewNodeClaim(p.id(), p.claims.provision.InstanceType, selector)
	labels, annotations := map[string]any{labelNamespace: p.key.Namespace}, map[string]any{}
	for k, v := range d.Labels {
		if _, asked := selector[k]; !asked || !setByOthers(k) {
			labels[k] = v
		}
	}
	for k, v := range d.Annotations {
		annotations[k] = v
	}
	requested := maps.Clone(selector)
	if requested == nil {
		requested = map[string]string{}
	}
	maps.Copy(requested, d.Requirements)
	var requirements, taints []any
	for _, k := range slices.Sorted(maps.Keys(requested)) {
		requirements = append(requirements, map[string]any{"key": k, "operator": string(corev1.NodeSelectorOpIn), "values": []any{requested[k]}})
	}
	for _, t := range d.Taints {
		text, effect, _ := strings.Cut(t, ":")
		key, value, _ := strings.Cut(text, "=")
		taints = append(taints, map[string]any{"key": key, "value": value, "effect": effect})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": nodeClaims.GroupVersion().String(), "kind": nodeClaimKind.Kind,
		"metadata": map[string]any{"name": name, "labels": labels, "annotations": annotations},
		"spec": map[string]any{
			"nodeClassRef": map[string]any{"group": class.Group, "kind": class.Kind, "name": class.Name},
			"requirements": requirements, "taints": taints, "expireAfter": "Never",
		},
	}}
}

// domainsOfOthers are the domains of labels that a cloud, a kubelet or a device plugin sets on nodes.
var domainsOfOthers = []string{"kubernetes.io", "k8s.io", "karpenter.sh", "k8s.aws", "azure.com", "amazonaws.com", "google.com", "nvidia.com", "amd.com", "intel.com"}

// setByOthers reports whether the label of a node is set by the cloud, the kubelet or a device
// plugin. It is then a requirement only: as a label of the NodeClaim, it could say what is not true.
func setByOthers(label string) bool {
	domain, _, found := strings.Cut(label, "/")
	if !found || strings.HasSuffix(domain, "node-restriction.kubernetes.io") || label == karpenterPool {
		return false
	}
	return slices.ContainsFunc(domainsOfOthers, func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
}

const karpenterPool = "karpenter.sh/nodepool"

// wake returns when the next NodeClaims are created after failures; zero if none are waited for.
func wake(plans []*plan) time.Time {
	var out time.Time
	for _, p := range plans {
		if x := p.claims; x != nil && x.waits && x.missing > 0 {
			out = earlier(out, x.trouble.next)
		}
	}
	return out
}
