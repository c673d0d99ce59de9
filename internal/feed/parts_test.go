package feed

import (
	"fmt"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// dumpOf returns a Feed of a dump.
func dumpOf() *Feed {
	return New(Options{Dump: &convert.Environment{DeviceResources: map[string]bool{}, Parts: true}, DevicesEnforced: true})
}

// podWith returns a pod with a container for each list of requests.
func podWith(lists ...map[string]string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ml"}}
	for i, list := range lists {
		c := corev1.Container{Name: fmt.Sprint("c", i), Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{}}}
		for name, amount := range list {
			c.Resources.Limits[corev1.ResourceName(name)] = resource.MustParse(amount)
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	return p
}

// TestPartsOfDevices checks what pods of a dump request by the resources of other programs.
func TestPartsOfDevices(t *testing.T) {
	type list = map[string]string
	const gib = cluster.Bytes(1 << 30)
	const percent = ", which berth does not read: the memory decides how much of a device a pod holds"
	sidecar, first := podWith(list{"cpu": "1"}), podWith(list{"cpu": "1"})
	always := corev1.ContainerRestartPolicyAlways
	sidecar.Spec.InitContainers = podWith(list{"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1024"}).Spec.Containers
	sidecar.Spec.InitContainers[0].RestartPolicy = &always
	first.Spec.InitContainers = podWith(list{"koordinator.sh/gpu": "50"}).Spec.Containers
	both := podWith(list{"koordinator.sh/gpu": "50"})
	both.Spec.InitContainers = first.Spec.InitContainers
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want cluster.Need
		note string
	}{
		"HAMi, a sidecar":          {sidecar, cluster.Need{Devices: 1, Resource: "nvidia.com/gpu", Memory: gib}, ""},
		"an init container":        {first, cluster.Need{Devices: 1, Resource: "nvidia.com/gpu", Share: 500}, ""},
		"an init container before": {both, cluster.Need{Devices: 1, Resource: "nvidia.com/gpu", Share: 500}, ""},
		"HAMi, memory":             {podWith(list{"nvidia.com/gpu": "2", "nvidia.com/gpumem": "1024"}), cluster.Need{Devices: 2, Resource: "nvidia.com/gpu", Memory: gib}, ""},
		"HAMi, memory only":        {podWith(list{"nvidia.com/gpumem": "1024"}), cluster.Need{Devices: 1, Resource: "nvidia.com/gpu", Memory: gib}, ""},
		"HAMi, percent and cores":  {podWith(list{"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "25", "nvidia.com/gpucores": "10"}), cluster.Need{Devices: 1, Resource: "nvidia.com/gpu", Share: 250}, "with nvidia.com/gpucores" + percent},
		"HAMi, two containers": {
			podWith(list{"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1024"}, list{"nvidia.com/gpu": "1", "nvidia.com/gpumem": "2048"}), cluster.Need{Devices: 2, Resource: "nvidia.com/gpu", Memory: 2 * gib},
			"with several containers that request different parts of devices; berth counts each part as large as the largest",
		},
		"HAMi, two containers alike": {podWith(list{"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1024"}, list{"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1024"}), cluster.Need{Devices: 2, Resource: "nvidia.com/gpu", Memory: gib}, ""},
		"Volcano":                    {podWith(list{"volcano.sh/vgpu-number": "2", "volcano.sh/vgpu-memory": "1024"}), cluster.Need{Devices: 2, Resource: "volcano.sh/vgpu-number", Memory: gib}, ""},
		"Volcano, whole":             {podWith(list{"volcano.sh/vgpu-number": "1"}), cluster.Need{Devices: 1, Resource: "volcano.sh/vgpu-number"}, ""},
		"Volcano and another":        {podWith(list{"volcano.sh/vgpu-number": "1", "nvidia.com/gpu": "1"}), cluster.Need{Devices: 1, Resource: "nvidia.com/gpu"}, "the pod requests nvidia.com/gpu too; keep one"},
		"Alibaba Cloud, two devices": {podWith(list{"aliyun.com/gpu-mem": "8", "aliyun.com/gpu-count": "2"}), cluster.Need{Devices: 2, Resource: "aliyun.com/gpu-mem", Memory: 4 * gib}, ""},
		"Koordinator, half":          {podWith(list{"koordinator.sh/gpu": "50"}), cluster.Need{Devices: 1, Resource: "nvidia.com/gpu", Share: 500}, ""},
		"Koordinator, two halves":    {podWith(list{"koordinator.sh/gpu": "50"}, list{"koordinator.sh/gpu": "50"}), cluster.Need{Devices: 1, Resource: "nvidia.com/gpu"}, ""},
		"Koordinator, whole":         {podWith(list{"koordinator.sh/gpu-core": "200", "koordinator.sh/gpu-memory-ratio": "200"}), cluster.Need{Devices: 2, Resource: "nvidia.com/gpu"}, ""},
		"Koordinator, shared":        {podWith(list{"koordinator.sh/gpu.shared": "2", "koordinator.sh/gpu-memory-ratio": "100", "koordinator.sh/gpu-core": "100"}), cluster.Need{Devices: 2, Resource: "nvidia.com/gpu", Share: 500}, ""},
		"Koordinator, memory":        {podWith(list{"koordinator.sh/gpu-memory": "8Gi"}), cluster.Need{Devices: 1, Resource: "nvidia.com/gpu", Memory: 8 * gib}, ""},
		"Koordinator, cores differ":  {podWith(list{"koordinator.sh/gpu-core": "10", "koordinator.sh/gpu-memory-ratio": "50"}), cluster.Need{Devices: 1, Resource: "nvidia.com/gpu", Share: 500}, "with koordinator.sh/gpu-core" + percent},
		"Koordinator, one and half":  {podWith(list{"koordinator.sh/gpu": "150"}), cluster.Need{Devices: 1, Resource: "nvidia.com/gpu"}, "150 percent are neither a part of a device nor whole devices"},
		"Koordinator, both names":    {podWith(list{"koordinator.sh/gpu": "200", "nvidia.com/gpu": "2"}), cluster.Need{Devices: 2, Resource: "nvidia.com/gpu"}, ""},
		"Koordinator and another":    {podWith(list{"koordinator.sh/gpu": "50", "nvidia.com/gpu": "1"}), cluster.Need{Devices: 1, Resource: "nvidia.com/gpu"}, "the pod requests nvidia.com/gpu too; keep one"},
		"too many devices":           {podWith(list{"koordinator.sh/gpu": "9000000000"}), cluster.Need{}, "1025 are more than the 1024 devices that one node may have"},
		"too much memory":            {podWith(list{"koordinator.sh/gpu-memory": "1Pi"}), cluster.Need{Devices: 1, Resource: "nvidia.com/gpu"}, "1125899906842624 units of device memory are more than a device has"},
	} {
		t.Run(name, func(t *testing.T) {
			f := dumpOf()
			_, notes := f.PutPod(c.pod)
			got := ""
			for _, n := range notes {
				got += n.Message
			}
			if got != c.note {
				t.Errorf("notes %q, want %q", got, c.note)
			}
			if diff := cmp.Diff(c.want, f.pods[nameOf(&c.pod.ObjectMeta)].shape.Need); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestDevicesOfRunningPods checks which devices running pods of a dump hold by their annotations and
// labels.
func TestDevicesOfRunningPods(t *testing.T) {
	type list = map[string]string
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	node.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("4")}
	half := func(name string, labels list) *corev1.Pod {
		p := podWith(list{})
		p.Name, p.Labels, p.Annotations = name, labels, list{"gpu-fraction": "0.5"}
		return p
	}
	with := func(p *corev1.Pod, annotations list) *corev1.Pod {
		p.Annotations = annotations
		return p
	}
	pair := half("pair", list{"runai-gpu-group/x": "x", "runai-gpu-group/y": "y"})
	pair.Annotations["gpu-fraction-num-devices"] = "2"
	for name, c := range map[string]struct {
		pods []*corev1.Pod
		want map[string][]string
	}{
		"KAI, two devices": {[]*corev1.Pod{half("a", list{"runai-gpu-group": "y"}), half("b", list{"runai-gpu-group": "x"})}, map[string][]string{"a": {"GPU-n-1"}, "b": {"GPU-n-0"}}},
		"KAI, one device":  {[]*corev1.Pod{half("a", list{"runai-gpu-group": "x"}), half("b", list{"runai-gpu-group": "x"})}, map[string][]string{"a": {"GPU-n-0"}, "b": {"GPU-n-0"}}},
		"KAI, a pair":      {[]*corev1.Pod{pair, half("a", list{"runai-gpu-group": "y"})}, map[string][]string{"a": {"GPU-n-1"}, "pair": {"GPU-n-0", "GPU-n-1"}}},
		"KAI, not known":   {[]*corev1.Pod{half("a", nil)}, map[string][]string{}},
		"Koordinator": {
			[]*corev1.Pod{with(podWith(list{"koordinator.sh/gpu": "200"}), list{"scheduling.koordinator.sh/device-allocated": `{"gpu":[{"minor":3},{"minor":1}],"rdma":[{"minor":0}]}`})},
			map[string][]string{"p": {"GPU-n-1", "GPU-n-3"}},
		},
		"Koordinator, another number": {[]*corev1.Pod{with(podWith(list{"koordinator.sh/gpu": "200"}), list{"scheduling.koordinator.sh/device-allocated": `{"gpu":[{"minor":3}]}`})}, map[string][]string{}},
		"Alibaba Cloud":               {[]*corev1.Pod{with(podWith(list{"aliyun.com/gpu-mem": "2"}), list{"ALIYUN_COM_GPU_MEM_IDX": "2"})}, map[string][]string{"p": {"GPU-n-2"}}},
		"Alibaba Cloud, none":         {[]*corev1.Pod{with(podWith(list{"aliyun.com/gpu-mem": "2"}), list{"ALIYUN_COM_GPU_MEM_IDX": "-1"})}, map[string][]string{}},
		"Alibaba Cloud, later":        {[]*corev1.Pod{with(podWith(list{"aliyun.com/gpu-mem": "2"}), list{"scheduler.framework.gpushare.allocation": `{"0":{"1":1},"1":{"1":1}}`})}, map[string][]string{"p": {"GPU-n-1"}}},
		"Volcano":                     {[]*corev1.Pod{with(podWith(list{"volcano.sh/vgpu-number": "1"}), list{"volcano.sh/vgpu-ids-new": "GPU-b,NVIDIA,100,0:"})}, map[string][]string{"p": {"GPU-b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := dumpOf()
			f.PutNode(node)
			for _, p := range c.pods {
				p.Spec.NodeName = "n"
				f.PutPod(p)
			}
			changes, _ := f.Settle()
			got := map[string][]string{}
			for _, x := range changes {
				if seen, is := x.(cluster.TaskSeen); is {
					name, _, _ := f.Pod(seen.Task)
					for _, h := range seen.Devices {
						got[name.Name] = append(got[name.Name], h.Device)
					}
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
