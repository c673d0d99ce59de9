package intree

import (
	"fmt"
	"testing"

	"github.com/berth-project/berth/cluster"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// benchmarkPods are the pods that the benchmarks ask for.
func benchmarkPods() map[string]*v1.Pod {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a1"}}
	term := []v1.PodAffinityTerm{{TopologyKey: zoneLabel, LabelSelector: selector}}
	out := map[string]*v1.Pod{}
	for _, name := range []string{"plain", "selector", "ports", "spread", "anti-affinity"} {
		out[name] = plain(name)
		out[name].Labels = map[string]string{"app": "a1"}
	}
	out["selector"].Spec.NodeSelector = map[string]string{zoneLabel: "z1"}
	out["ports"].Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 80, ContainerPort: 80}}
	out["spread"].Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: zoneLabel, WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: selector}}
	out["anti-affinity"].Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term}}
	return out
}

// benchmarkPlugin returns a plugin whose mirror has 5,000 nodes with 30 pods each. A tenth
// of the pods has anti-affinity to pods of the same node that do not exist.
func benchmarkPlugin(b *testing.B) *plugin {
	b.Helper()
	store := NewStore()
	p, err := build(store)
	if err != nil {
		b.Fatal(err)
	}
	for i := range 5000 {
		name := fmt.Sprintf("n%04d", i)
		p.mirror.setNode(name, node(name, map[string]string{zoneLabel: fmt.Sprint("z", i%10)}))
		for k := range 30 {
			o := plain(fmt.Sprintf("%s-%d", name, k))
			o.Labels = map[string]string{"app": fmt.Sprint("a", k%10)}
			if k%10 == 0 {
				o.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
					TopologyKey: v1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "none"}}}}}}
			}
			add(b, p.mirror, name, o)
		}
	}
	p.mirror.forget()
	return p
}

func add(b *testing.B, m *mirror, name string, o *v1.Pod) {
	b.Helper()
	info, err := framework.NewPodInfo(o)
	if err != nil {
		b.Fatal(err)
	}
	if err := m.add(name, info); err != nil {
		b.Fatal(err)
	}
}

// Benchmark measures at 5,000 nodes with 30 pods each. PreFilter: all PreFilters for a pod.
// Follow: the same after one more pod was placed. Filter: all filters for one node, by form.
func Benchmark(b *testing.B) {
	p := benchmarkPlugin(b)
	pods := benchmarkPods()
	for _, name := range []string{"plain", "selector", "ports", "spread", "anti-affinity"} {
		key, task := TaskKey{Task: name}, &cluster.Task{}
		if err := p.store.PutPod(key, pods[name]); err != nil {
			b.Fatal(err)
		}
		known := p.store.pods[key]
		b.Run("PreFilter/"+name, func(b *testing.B) {
			for b.Loop() {
				clear(p.cycles)
				p.cycleOf(task, known)
			}
		})
		b.Run("Follow/"+name, func(b *testing.B) {
			p.cycleOf(task, known)
			i := 0
			for b.Loop() {
				o := *pods[name]
				o.UID = types.UID(fmt.Sprint("follow-", i))
				on := fmt.Sprintf("n%04d", i%5000)
				add(b, p.mirror, on, &o)
				p.cycleOf(task, known)
				if err := p.mirror.remove(on, o.UID); err != nil {
					b.Fatal(err)
				}
				p.cycleOf(task, known)
				i++
			}
			p.mirror.forget()
		})
		for i, c := range []*cycle{p.cycleOfShape(known.key), p.cycleOfShape(known.key), p.cycleOf(task, known)} {
			b.Run("Filter/"+name+"/"+[]string{"static", "shape", "task"}[i], func(b *testing.B) {
				k := 0
				for b.Loop() {
					p.ask(c, p.mirror.nodes[p.mirror.list[k%5000].Node().Name], form(i))
					k++
				}
			})
		}
	}
}
