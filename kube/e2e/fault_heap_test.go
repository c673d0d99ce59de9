package e2e

import (
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

var heapPods = flag.Int("heap-pods", 300, "after how many pods TestHeap measures first; it measures again after five times as many")

// TestHeap checks that pods that were placed and deleted leave nothing behind: the heap after a
// collection does not grow with their number.
func TestHeap(t *testing.T) {
	w := newWorld(t)
	w.addNodes(20)
	w.newInProcess(w.config(), always)
	created := 0
	grow := func(until int) {
		for created < until {
			count := min(until-created, 150)
			w.createMany(count, func(i int) *corev1.Pod {
				if i%5 < 3 { // gangs and single pods
					return pod(fmt.Sprintf("g%06d-%d", (created+i)/5, i%5), 1, inGang(fmt.Sprintf("g%06d", (created+i)/5), 3))
				}
				return pod(fmt.Sprintf("s%06d", created+i), 1)
			})
			created += count
			w.eventually(func() string { return w.allBound("") })
			w.deleteAll()
		}
		time.Sleep(2 * time.Second) // the last deletions arrive
	}
	var heap [2]uint64
	for i, until := range []int{*heapPods, 5 * *heapPods} {
		grow(until)
		heap[i] = heapInUse()
		t.Logf("%d pods: %.1f MiB", until, float64(heap[i])/(1<<20))
	}
	ratio := float64(heap[1]) / float64(heap[0])
	perPod := (float64(heap[1]) - float64(heap[0])) / float64(4**heapPods)
	t.Logf("the heap has grown by a factor of %.2f, %.0f bytes per pod", ratio, perPod)
	// With few pods, lists of a fixed length, such as that of the UIDs of deleted pods, are still
	// being filled, and how many changes the last sessions had makes a difference.
	if ratio > 1.1 && (*heapPods >= 10000 || perPod > 2048) {
		t.Errorf("want at most 1.1")
	}
}

// heapInUse returns the size of the objects that a collection keeps.
func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
