package feed

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func requests(list corev1.ResourceList) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = list }
}

func TestDevicesOfNodes(t *testing.T) {
	for name, c := range map[string]struct{ labels, allocatable, want string }{
		"whole": {
			`nvidia.com/gpu.product: NVIDIA-L4, nvidia.com/gpu.count: "2", nvidia.com/gpu.memory: "24576"`, `nvidia.com/gpu: "2"`,
			"2 NVIDIA-L4 of nvidia.com/gpu, 24 GiB",
		},
		"time-slicing": {
			`nvidia.com/gpu.product: NVIDIA-L4-SHARED, nvidia.com/gpu.count: "1", nvidia.com/gpu.memory: "24576", nvidia.com/gpu.replicas: "4", nvidia.com/gpu.sharing-strategy: time-slicing`,
			`nvidia.com/gpu: "4"`, "4 NVIDIA-L4-SHARED of nvidia.com/gpu, 24 GiB, time-slicing",
		},
		"MPS": {
			`nvidia.com/gpu.product: NVIDIA-L4-SHARED, nvidia.com/gpu.count: "1", nvidia.com/gpu.memory: "24576", nvidia.com/gpu.replicas: "4", nvidia.com/gpu.sharing-strategy: mps`,
			`nvidia.com/gpu: "4"`, "4 NVIDIA-L4-SHARED of nvidia.com/gpu, 6 GiB, mps",
		},
		"MIG": {
			`nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3, nvidia.com/gpu.count: "1", nvidia.com/gpu.memory: "81920", nvidia.com/mig.strategy: mixed, nvidia.com/mig-1g.10gb.count: "7", nvidia.com/mig-1g.10gb.memory: "9856"`,
			`nvidia.com/mig-1g.10gb: "7"`, "7 NVIDIA-H100-80GB-HBM3 of nvidia.com/mig-1g.10gb, 9 GiB",
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newFixture(t)
			x.putAll(fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata: {name: gpu-2, labels: {%s}}\nstatus: {allocatable: {cpu: 8, memory: 32Gi, pods: 110, %s}}", c.labels, c.allocatable))
			n := x.state.Node("gpu-2")
			if len(n.Devices) == 0 {
				t.Fatalf("no devices: %+v, %+v", n.Defect, x.notes)
			}
			d := n.Devices[0]
			got := fmt.Sprintf("%d %s of %s, %d GiB", len(n.Devices), d.Product, d.Resource, d.Memory>>30)
			if n.Sharing.Strategy != "" {
				got += ", " + n.Sharing.Strategy
			}
			if got != c.want {
				t.Errorf("have %s, want %s", got, c.want)
			}
		})
	}
}

func TestNeedOfPods(t *testing.T) {
	for name, c := range map[string]struct {
		pod      func(*corev1.Pod)
		enforced bool
		want     cluster.Need
		refused  string // part of the note
	}{
		"whole devices": {pod: requests(corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}), want: cluster.Need{Devices: 2, Resource: "nvidia.com/gpu"}},
		"MIG slice":     {pod: requests(corev1.ResourceList{"nvidia.com/mig-1g.10gb": resource.MustParse("1")}), want: cluster.Need{Devices: 1, Resource: "nvidia.com/mig-1g.10gb", Partition: "1g.10gb"}},
		"fraction that is not enforced": {
			pod: func(p *corev1.Pod) { requests(nil)(p); p.Annotations["gpu-fraction"] = "0.5" }, refused: "the kubelet chooses the device",
		},
		"memory that is not enforced": {
			pod: func(p *corev1.Pod) { requests(nil)(p); p.Annotations["gpu-memory"] = "4096" }, refused: "the kubelet chooses the device",
		},
		"fraction": {
			pod: func(p *corev1.Pod) {
				requests(nil)(p)
				p.Annotations["gpu-fraction"], p.Annotations["gpu-fraction-num-devices"] = "0.5", "2"
			}, enforced: true,
			want: cluster.Need{Devices: 2, Resource: "nvidia.com/gpu", Share: 500},
		},
		"memory": {
			pod: func(p *corev1.Pod) { requests(nil)(p); p.Annotations["gpu-memory"] = "4096" }, enforced: true,
			want: cluster.Need{Devices: 1, Resource: "nvidia.com/gpu", Memory: 4 << 30},
		},
		"fraction above 1":               {pod: func(p *corev1.Pod) { requests(nil)(p); p.Annotations["gpu-fraction"] = "1.5" }, enforced: true, refused: "at most 1"},
		"fraction that is not a number":  {pod: func(p *corev1.Pod) { requests(nil)(p); p.Annotations["gpu-fraction"] = "NaN" }, enforced: true, refused: "at most 1"},
		"fraction besides whole devices": {pod: annotated("gpu-fraction", "0.5"), enforced: true, refused: "keep one"},
		"HAMi": {
			pod: requests(corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1"), "nvidia.com/gpumem": resource.MustParse("3000")}), enforced: true,
			refused: "cannot be enforced",
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newFixture(t)
			x.feed.options.DevicesEnforced = c.enforced
			x.put(onePod("a", "1", c.pod))
			j := x.state.Job("pod/ml/a")
			if c.refused != "" {
				if j != nil || len(x.notes) != 1 || x.notes[0].Severity != convert.Invalid || !strings.Contains(x.notes[0].Message, c.refused) {
					t.Errorf("job %v, notes %+v", j, x.notes)
				}
				// If the pod has a node nevertheless, its room is taken.
				x.put(onePod("a", "1", c.pod, onNode))
				if j = x.state.Job("pod/ml/a"); j == nil || j.Tasks()[0].Status != cluster.Bound {
					t.Errorf("a refused pod that runs is not booked")
				}
				return
			}
			if j == nil {
				t.Fatalf("no job; notes %+v", x.notes)
			}
			if diff := cmp.Diff(c.want, j.Tasks()[0].Shape.Need); diff != "" {
				t.Errorf("need (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDevicesOfPods(t *testing.T) {
	for name, c := range map[string]struct{ annotation, want, note string }{
		"listed":     {`[{"device":"GPU-gpu-1-3","milli":1000,"memory":25769803776}]`, "GPU-gpu-1-3", ""},
		"not listed": {"", "GPU-gpu-1-0", ""},
		"too many":   {`[{"device":"GPU-gpu-1-3"},{"device":"GPU-gpu-1-2"}]`, "GPU-gpu-1-0", "2 devices are listed"},
		"no list":    {`GPU-gpu-1-3`, "GPU-gpu-1-0", "invalid character"},
		"too much":   {`[{"device":"GPU-gpu-1-3","milli":1001}]`, "GPU-gpu-1-0", "not a part of a device"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newFixture(t)
			x.putAll(testNode)
			x.put(onePod("a", "1", onNode, annotated(AnnotationDevices, c.annotation)))
			n := x.state.Node("gpu-1")
			claims := x.state.Job("pod/ml/a").Tasks()[0].Claims
			if len(claims) != 1 || n.Devices[claims[0].Device].UUID != c.want {
				t.Errorf("claims %+v, want %s", claims, c.want)
			}
			if c.note == "" && len(x.notes) > 0 || c.note != "" && (len(x.notes) != 1 || !strings.Contains(x.notes[0].Detail, c.note)) {
				t.Errorf("notes %+v, want %q", x.notes, c.note)
			}
		})
	}
}
