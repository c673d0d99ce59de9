package models

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

var nodeClaimResource = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}

const (
	labelModel         = "berth.dev/model"
	karpenterFinalizer = "karpenter.sh/termination"
)

// provisioner stands in for Karpenter: it makes the nodes of NodeClaims, and removes them.
type provisioner struct {
	*world
	mu    sync.Mutex
	late  time.Duration  // before each step: the machine starts, the node joins, its devices are seen
	fail  map[string]int // how many more NodeClaims of a model are rejected, by label
	ever  map[string]int // how many NodeClaims were created, by the label of their model
	most  map[string]int // how many existed at once that were not being deleted
	live  map[string]map[string]bool
	since map[string]time.Time // when a claim was seen first, by name and step
}

// startProvisioner starts the stand-in, which runs until the test ends.
func (w *world) startProvisioner() *provisioner {
	w.Helper()
	p := &provisioner{world: w, fail: map[string]int{}, ever: map[string]int{}, most: map[string]int{}, live: map[string]map[string]bool{}, since: map[string]time.Time{}}
	informer := dynamicinformer.NewDynamicSharedInformerFactory(w.dynamic, 0).ForResource(nodeClaimResource).Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { p.count(o.(*unstructured.Unstructured), true, false) },
		UpdateFunc: func(_, o any) { p.count(o.(*unstructured.Unstructured), false, false) },
		DeleteFunc: func(o any) {
			if u, is := o.(*unstructured.Unstructured); is {
				p.count(u, false, true)
			}
		},
	})
	if err != nil {
		w.Fatal(err)
	}
	ctx, stop := context.WithCancel(w.Ctx)
	var wg sync.WaitGroup
	wg.Go(func() { informer.Run(ctx.Done()) })
	wg.Go(func() {
		for ctx.Err() == nil {
			for _, o := range informer.GetStore().List() {
				if err := p.act(ctx, o.(*unstructured.Unstructured).DeepCopy()); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
					w.Errorf("the provisioner failed: %v", err)
					return
				}
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
	w.Cleanup(func() {
		stop()
		wg.Wait()
	})
	return p
}

// count notes how many NodeClaims each model has and has had.
func (p *provisioner) count(o *unstructured.Unstructured, added, gone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	label := o.GetLabels()[labelModel]
	if p.live[label] == nil {
		p.live[label] = map[string]bool{}
	}
	if added {
		p.ever[label]++
	}
	delete(p.live[label], o.GetName())
	if !gone && o.GetDeletionTimestamp() == nil {
		p.live[label][o.GetName()] = true
	}
	p.most[label] = max(p.most[label], len(p.live[label]))
}

// figures returns how many NodeClaims of a model were ever created, existed at once, and exist.
func (p *provisioner) figures(label string) (ever, most int, live []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ever[label], p.most[label], slices.Sorted(maps.Keys(p.live[label]))
}

// set changes how late nodes are, and how many NodeClaims of a model fail.
func (p *provisioner) set(late time.Duration, label string, fail int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late, p.fail[label] = late, fail
}

// passed reports whether the time since the step of the claim was first asked about is long enough.
func (p *provisioner) passed(o *unstructured.Unstructured, step string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := string(o.GetUID()) + step
	if _, known := p.since[key]; !known {
		p.since[key] = time.Now()
	}
	return time.Since(p.since[key]) >= p.late
}

// rejects reports whether the claim fails.
func (p *provisioner) rejects(o *unstructured.Unstructured) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	label := o.GetLabels()[labelModel]
	if p.fail[label] == 0 || statusOf(o, "Launched") != "" {
		return false
	}
	p.fail[label]--
	return true
}

// act takes the next step for a claim.
func (p *provisioner) act(ctx context.Context, o *unstructured.Unstructured) error {
	claims, node := p.dynamic.Resource(nodeClaimResource), "node-"+o.GetName()
	switch {
	case o.GetDeletionTimestamp() != nil:
		if len(o.GetFinalizers()) == 0 {
			return nil
		}
		if err := p.Client.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		o.SetFinalizers(nil)
		_, err := claims.Update(ctx, o, metav1.UpdateOptions{})
		return err
	case !slices.Contains(o.GetFinalizers(), karpenterFinalizer):
		o.SetFinalizers([]string{karpenterFinalizer})
		_, err := claims.Update(ctx, o, metav1.UpdateOptions{})
		return err
	case p.rejects(o):
		setStatus(o, "Launched", "False", "InsufficientCapacity", "all requested instance types were unavailable during launch")
		if _, err := claims.UpdateStatus(ctx, o, metav1.UpdateOptions{}); err != nil {
			return err
		}
		return claims.Delete(ctx, o.GetName(), metav1.DeleteOptions{})
	case statusOf(o, "Launched") == "False":
		return nil
	case statusOf(o, "Launched") == "":
		if !p.passed(o, "machine") {
			return nil
		}
		setStatus(o, "Launched", "True", "Launched", "")
		_ = unstructured.SetNestedField(o.Object, "stand-in:///"+o.GetName(), "status", "providerID")
	case statusOf(o, "Registered") == "":
		if !p.passed(o, "node") {
			return nil
		}
		if _, err := p.Client.CoreV1().Nodes().Create(ctx, p.node(o, node), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		setStatus(o, "Registered", "True", "Registered", "")
		_ = unstructured.SetNestedField(o.Object, node, "status", "nodeName")
	case statusOf(o, "Initialized") == "":
		if !p.passed(o, "devices") {
			return nil
		}
		patch := `{"metadata":{"labels":{"nvidia.com/gpu.product":"NVIDIA-A100-80GB-PCIe","nvidia.com/gpu.count":"1","nvidia.com/gpu.memory":"81920"}},"status":{"capacity":{"nvidia.com/gpu":"1"},"allocatable":{"nvidia.com/gpu":"1"}}}`
		for _, sub := range []string{"", "status"} {
			if _, err := p.Client.CoreV1().Nodes().Patch(ctx, node, "application/merge-patch+json", []byte(patch), metav1.PatchOptions{}, strings.Fields(sub)...); err != nil {
				return err
			}
		}
		setStatus(o, "Initialized", "True", "Initialized", "")
		setStatus(o, "Ready", "True", "Ready", "")
	default:
		return nil
	}
	_, err := claims.UpdateStatus(ctx, o, metav1.UpdateOptions{})
	return err
}

// node returns the node of a claim, as it is before its devices are seen.
func (p *provisioner) node(o *unstructured.Unstructured, name string) *corev1.Node {
	labels := maps.Clone(o.GetLabels())
	labels["kubernetes.io/hostname"] = name
	requirements, _, _ := unstructured.NestedSlice(o.Object, "spec", "requirements")
	for _, r := range requirements {
		r := r.(map[string]any)
		labels[r["key"].(string)] = r["values"].([]any)[0].(string)
	}
	amounts := corev1.ResourceList{"cpu": resource.MustParse("24"), "memory": resource.MustParse("220Gi"), "pods": resource.MustParse("110")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: labels, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: o.GetName(), UID: o.GetUID()}},
		},
		Spec:   corev1.NodeSpec{ProviderID: "stand-in:///" + o.GetName(), Taints: []corev1.Taint{{Key: "sku", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{Capacity: amounts, Allocatable: amounts},
	}
}

// statusOf returns the status of a condition; "" if there is none.
func statusOf(o *unstructured.Unstructured, kind string) string {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range list {
		if c := c.(map[string]any); c["type"] == kind {
			return fmt.Sprint(c["status"])
		}
	}
	return ""
}

func setStatus(o *unstructured.Unstructured, kind, status, reason, message string) {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	list = append(list, map[string]any{"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)})
	_ = unstructured.SetNestedSlice(o.Object, list, "status", "conditions")
}
