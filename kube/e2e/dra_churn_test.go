package e2e

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/berth-project/berth/kube/internal/controlplane"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestDRAChurn creates and deletes gangs and pods that claim GPUs in all ways at random. At no
// moment is a device allocated twice; in the end, the State has the devices that are allocated.
func TestDRAChurn(t *testing.T) {
	w := newWorld(t, controlplane.ControllerManager)
	w.apply(draClasses)
	w.draNode("h100-0", "NVIDIA H100 80GB HBM3", "80Gi", 4)
	w.draNode("h100-1", "NVIDIA H100 80GB HBM3", "80Gi", 4)
	w.draNode("l4", "NVIDIA L4", "24Gi", 4)
	w.partitionedNode("parts")
	w.watchClaims()
	s := w.newInProcess(w.config(), always)
	random := rand.New(rand.NewPCG(*faultSeed, 3))
	ways := []func(*corev1.Pod){claiming("one"), claiming("two"), claiming("l4"), claiming("mig"), func(p *corev1.Pod) { *p = *pod(p.Name, 1) }}
	var alive []string
	for step := range 40 {
		if len(alive) > 6 || len(alive) > 0 && random.IntN(3) == 0 {
			i := random.IntN(len(alive))
			if err := w.client.CoreV1().Pods(namespace).Delete(w.ctx, alive[i], metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
				t.Fatal(err)
			}
			alive = append(alive[:i], alive[i+1:]...)
		} else if way := ways[random.IntN(len(ways))]; random.IntN(3) == 0 {
			gang := fmt.Sprintf("gang-%02d", step)
			for i := range 2 {
				name := fmt.Sprintf("%s-%d", gang, i)
				w.create(pod(name, 0, claiming("one"), inGang(gang, 2)))
				alive = append(alive, name)
			}
		} else {
			name := fmt.Sprintf("pod-%02d", step)
			w.create(pod(name, 0, way))
			alive = append(alive, name)
		}
		time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond)
	}
	// Some pods may wait because too few devices of their kind are left.
	w.eventually(func() string {
		if got := len(w.pods()); got != len(alive) {
			return fmt.Sprintf("there are %d pods, want %d", got, len(alive))
		}
		for name, p := range w.pods() {
			if text := conditionText(p); p.Spec.NodeName == "" && text == "no condition" {
				return "pod " + name + " is neither bound nor refused"
			}
		}
		return ""
	})
	w.sameAsFresh(s)
	pods := w.checkDevices()
	t.Logf("%d pods, devices: %v", len(alive), pods)
}
