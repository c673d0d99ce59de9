package e2e

import (
	"fmt"
	"testing"

	"github.com/berth-project/berth/kube/internal/controlplane"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const class = `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: local}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
`

const volume = `apiVersion: v1
kind: PersistentVolume
metadata: {name: volume-%[1]s}
spec:
  capacity: {storage: 10Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: local
  local: {path: /data}
  nodeAffinity:
    required:
      nodeSelectorTerms:
      - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%[1]s]}]
`

const claim = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %s, namespace: default}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: local
  resources: {requests: {storage: 5Gi}}
`

func withClaim(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})
	}
}

// TestVolumes binds claims that wait for their first consumer. Two of three nodes have a
// volume; three pods want one. A gang gets volumes for all of its pods or for none.
func TestVolumes(t *testing.T) {
	w := newWorld(t, controlplane.ControllerManager)
	w.addNodes(3)
	w.apply(class)
	for _, node := range []string{"node-0001", "node-0002"} {
		w.apply(fmt.Sprintf(volume, node))
	}
	for _, name := range []string{"a", "b", "c"} {
		w.apply(fmt.Sprintf(claim, name))
	}
	scheduler := w.scheduler()
	w.create(pod("a", 1, withClaim("a"), inGang("pair", 2)), pod("b", 1, withClaim("b"), inGang("pair", 2)))
	w.eventually(func() string {
		if text := w.allBound(""); text != "" {
			return text
		}
		for _, name := range []string{"a", "b"} {
			c, err := w.client.CoreV1().PersistentVolumeClaims(namespace).Get(w.ctx, name, metav1.GetOptions{})
			if err != nil || c.Status.Phase != corev1.ClaimBound {
				return fmt.Sprintf("claim %s: %v, %v", name, err, c.Status.Phase)
			}
			if node := w.pods()[name].Spec.NodeName; c.Spec.VolumeName != "volume-"+node {
				t.Fatalf("pod %s is on %s and has volume %s", name, node, c.Spec.VolumeName)
			}
		}
		return ""
	})
	w.create(pod("c", 1, withClaim("c")))
	w.eventually(func() string {
		if text := conditionText(w.pods()["c"]); len(text) < 20 || text[:20] != "False Unschedulable:" {
			return "pod c: " + text
		}
		return ""
	})
	t.Log(conditionText(w.pods()["c"]))
	w.apply(fmt.Sprintf(volume, "node-0000"))
	w.eventually(func() string { return w.allBound("c") })
	w.checkDone(scheduler)
}

const provisioned = `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: provisioned}
provisioner: example.com/provisioner
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: made, namespace: default}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: provisioned
  resources: {requests: {storage: 5Gi}}
`

const made = `apiVersion: v1
kind: PersistentVolume
metadata: {name: made}
spec:
  capacity: {storage: 5Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: provisioned
  claimRef: {namespace: default, name: made}
  hostPath: {path: /data}
`

// TestProvisioned chooses the node of a volume that does not exist yet. The pod is bound when the
// volume was made. The test acts as the provisioner.
func TestProvisioned(t *testing.T) {
	w := newWorld(t, controlplane.ControllerManager)
	w.addNodes(2)
	w.apply(provisioned)
	scheduler := w.scheduler()
	w.create(pod("a", 1, withClaim("made")))
	node := ""
	w.eventually(func() string {
		c, err := w.client.CoreV1().PersistentVolumeClaims(namespace).Get(w.ctx, "made", metav1.GetOptions{})
		if node = c.Annotations["volume.kubernetes.io/selected-node"]; node == "" {
			return fmt.Sprintf("no node is chosen for the claim: %v", err)
		}
		return ""
	})
	if n := w.pods()["a"].Spec.NodeName; n != "" {
		t.Errorf("the pod is bound to %s before there is a volume", n)
	}
	w.apply(made)
	w.eventually(func() string { return w.allBound("a") })
	if n := w.pods()["a"].Spec.NodeName; n != node {
		t.Errorf("the pod is on %s, and its volume was made for %s", n, node)
	}
	w.checkDone(scheduler)
}
