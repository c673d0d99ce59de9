package feed

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// BenchmarkPutPod delivers each pod twice, pending and bound: pods of their own, and the
// pods of one gang of 10,000.
func BenchmarkPutPod(b *testing.B) {
	for name, group := range map[string]func(*corev1.Pod){"single": func(*corev1.Pod) {}, "gang": inGang} {
		b.Run(name, func(b *testing.B) {
			const count = 10_000
			pods := make([]*corev1.Pod, 0, 2*count)
			for i := range count {
				name := fmt.Sprintf("p%d", i)
				pods = append(pods, onePod(name, name, group), onePod(name, name, group, onNode))
			}
			b.ReportAllocs()
			for b.Loop() {
				f := New(testOptions)
				for _, p := range pods {
					if changes, _ := f.PutPod(p); len(changes) == 0 {
						b.Fatal("no change")
					}
				}
				if _, uid, found := f.Pod(f.pods[types.NamespacedName{Namespace: "ml", Name: "p1"}].ref()); !found || uid != "p1" {
					b.Fatal("a pod is not found")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(pods)), "ns/pod")
		})
	}
}
