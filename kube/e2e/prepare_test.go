package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-project/berth/kube/internal/controlplane"
	"github.com/berth-project/berth/kube/internal/testcluster"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// preparing waits until the scheduler has chosen the volume for a claim. No controller runs that would confirm it, so that the pod is being prepared.
func (w *world) preparing(volume string) {
	w.Helper()
	w.eventually(func() string {
		v, err := w.client.CoreV1().PersistentVolumes().Get(w.ctx, volume, metav1.GetOptions{})
		if err != nil || v.Spec.ClaimRef == nil {
			return fmt.Sprintf("volume %s is not chosen: %v", volume, err)
		}
		return ""
	})
}

// addVolume adds a volume of the node, which is available. A controller would say so.
func (w *world) addVolume(node string) {
	w.Helper()
	w.apply(fmt.Sprintf(volume, node))
	if _, err := w.client.CoreV1().PersistentVolumes().Patch(w.ctx, "volume-"+node, types.MergePatchType, []byte(`{"status":{"phase":"Available"}}`), metav1.PatchOptions{}, "status"); err != nil {
		w.Fatal(err)
	}
}

// confirm binds the claim to the volume, as the controller of volumes does.
func (w *world) confirm(claim, volume string) {
	w.Helper()
	claims := w.client.CoreV1().PersistentVolumeClaims(namespace)
	spec := fmt.Sprintf(`{"metadata":{"annotations":{"pv.kubernetes.io/bind-completed":"yes"}},"spec":{"volumeName":%q}}`, volume)
	if _, err := claims.Patch(w.ctx, claim, types.MergePatchType, []byte(spec), metav1.PatchOptions{}); err != nil {
		w.Fatal(err)
	}
	if _, err := claims.Patch(w.ctx, claim, types.MergePatchType, []byte(`{"status":{"phase":"Bound"}}`), metav1.PatchOptions{}, "status"); err != nil {
		w.Fatal(err)
	}
}

// TestOvertaken changes the cluster while a pod waits for its volume. When the volume is there,
// the pod is not bound to a node that was cordoned or deleted meanwhile.
func TestOvertaken(t *testing.T) {
	w := newWorld(t)
	w.addNodes(2)
	w.apply(class)
	p := w.newProxy(*faultSeed)
	w.newInProcess(p.config(), always)
	cordon := func(value bool) {
		t.Helper()
		if _, err := w.client.CoreV1().Nodes().Patch(w.ctx, "node-0001", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, value), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w.addVolume("node-0001")
	w.apply(fmt.Sprintf(claim, "a"))
	w.create(pod("a", 1, withClaim("a")))
	w.preparing("volume-node-0001")
	cordon(true)
	time.Sleep(time.Second) // the scheduler learns of the node before the claim
	w.confirm("a", "volume-node-0001")
	w.eventually(func() string {
		if text := conditionText(w.pods()["a"]); !strings.HasPrefix(text, "False Unschedulable") {
			return "pod a: " + text
		}
		return ""
	})
	if n := nodeOf(w.pods()["a"]); n != "" {
		t.Errorf("pod a is bound to %s, which is cordoned", n)
	}
	cordon(false)
	w.eventually(func() string { return w.allBound("a") })

	// The pod is deleted while it is prepared.
	w.addVolume("node-0000")
	w.apply(fmt.Sprintf(claim, "b"))
	w.create(pod("b", 1, withClaim("b")))
	w.preparing("volume-node-0000")
	if err := w.client.CoreV1().Pods(namespace).Delete(w.ctx, "b", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	w.confirm("b", "volume-node-0000")
	time.Sleep(2 * time.Second) // VolumeBinding looks once a second
	for _, r := range p.requests() {
		if strings.HasSuffix(r.path, "/pods/b/binding") {
			t.Error("a binding of the deleted pod was sent")
		}
	}
}

// TestUnneededDevices deletes a node while devices on it are being allocated to a pod. The devices
// are released, so that the pod is placed on another node.
func TestUnneededDevices(t *testing.T) {
	w := newWorld(t, controlplane.ControllerManager)
	w.addNodes(2)
	w.apply(deviceClass)
	for _, node := range []string{"node-0000", "node-0001"} {
		w.apply(fmt.Sprintf(slice, node))
	}
	p := w.newProxy(*faultSeed)
	w.newInProcess(p.config(), always)
	var once atomic.Bool
	first := make(chan string, 1)
	p.before(func(r *http.Request) int {
		// The update of the status allocates the device. The node is deleted before it is forwarded.
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/resourceclaims/") && strings.HasSuffix(r.URL.Path, "/status") && once.CompareAndSwap(false, true) {
			node := "node-0000"
			if err := w.client.CoreV1().Nodes().Delete(w.ctx, node, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second) // the scheduler learns of it
			first <- node
		}
		return 0
	})
	w.create(pod("a", 0, withDevices, func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
			Weight: 100, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "kubernetes.io/hostname", Operator: corev1.NodeSelectorOpIn, Values: []string{"node-0000"}}}},
		}}}}
	}))
	<-first
	w.eventually(func() string {
		if n := nodeOf(w.pods()["a"]); n != "node-0001" {
			return fmt.Sprintf("pod a is on %q: %s", n, conditionText(w.pods()["a"]))
		}
		return ""
	})
	w.checkClaims()
}

// TestUnneededClaim refuses to allocate devices to the claim that the scheduler has made for a pod.
// The scheduler deletes the claim, and makes another one when it places the pod again.
func TestUnneededClaim(t *testing.T) {
	w := newWorld(t, controlplane.ControllerManager)
	w.draNode("gpus", "NVIDIA H100 80GB HBM3", "80Gi", 2)
	w.apply(draClasses)
	p := w.newProxy(*faultSeed)
	w.newInProcess(p.config(), always)
	var refused atomic.Bool
	p.before(func(r *http.Request) int {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/resourceclaims/") && strings.HasSuffix(r.URL.Path, "/status") && !refused.Swap(true) {
			return http.StatusForbidden
		}
		return 0
	})
	w.create(pod("a", 1))
	w.eventually(func() string { return w.allBound("a") })
	w.eventually(func() string {
		claims, err := w.client.ResourceV1().ResourceClaims(namespace).List(w.ctx, metav1.ListOptions{})
		if err != nil || len(claims.Items) != 1 {
			return fmt.Sprintf("there are %d claims, want 1: %v", len(claims.Items), err)
		}
		return ""
	})
	if !refused.Load() || w.RequestsOf(schedulerUser)[testcluster.Permission{Verb: "delete", Group: "resource.k8s.io", Resource: "resourceclaims"}] == 0 {
		t.Error("the scheduler has not deleted a claim")
	}
}

// TestLostWhilePreparing loses the lease after the first of two requests that allocate devices.
// The second one is not sent before the lease is held again.
func TestLostWhilePreparing(t *testing.T) {
	w := newWorld(t, controlplane.ControllerManager)
	w.addNodes(1)
	w.apply(deviceClass)
	w.apply(fmt.Sprintf(slice, "node-0000"))
	p := w.newProxy(*faultSeed)
	var lost atomic.Bool
	w.newInProcess(p.config(), func() bool { return !lost.Load() })
	began := make(chan struct{}, 10)
	p.before(func(r *http.Request) int {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/resourceclaims/") && !lost.Swap(true) {
			began <- struct{}{}
		}
		return 0
	})
	w.create(pod("a", 0, withDevices))
	<-began
	at := time.Now()
	time.Sleep(2 * time.Second)
	for _, r := range p.requests() {
		if r.at.After(at) && r.writes() {
			t.Errorf("%s %s was sent %s after the lease was lost", r.method, r.path, r.at.Sub(at))
		}
	}
	p.before(nil)
	lost.Store(false)
	w.eventually(func() string { return w.allBound("a") })
	w.checkClaims()
}

// TestGangWaitsForClaims holds the request that allocates the devices of one pod of a gang. The
// other pod, which claims nothing, is not bound before. If the request is refused, no pod of the
// gang is bound, and the gang is placed again.
func TestGangWaitsForClaims(t *testing.T) {
	w := newWorld(t, controlplane.ControllerManager)
	w.addNodes(1)
	w.apply(deviceClass)
	w.apply(fmt.Sprintf(slice, "node-0000"))
	p := w.newProxy(*faultSeed)
	w.newInProcess(p.config(), always)
	var tries atomic.Int32
	p.before(func(r *http.Request) int {
		if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/resourceclaims/") || !strings.HasSuffix(r.URL.Path, "/status") {
			return 0
		}
		time.Sleep(time.Second)
		for name, pod := range w.pods() {
			if n := nodeOf(pod); n != "" {
				t.Errorf("pod %s is bound to %s while the claim of its gang is being allocated", name, n)
			}
		}
		if tries.Add(1) == 1 {
			return http.StatusForbidden
		}
		return 0
	})
	w.create(pod("a", 0, inGang("pair", 2)), pod("b", 0, withDevices, inGang("pair", 2)))
	w.eventually(func() string { return w.allBound("") })
	if tries.Load() < 2 {
		t.Errorf("the claim was allocated by %d requests, of which the first was refused", tries.Load())
	}
}
