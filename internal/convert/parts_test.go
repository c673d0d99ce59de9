package convert_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestSharedDevices checks which devices a node has that shares them in the way of another program.
func TestSharedDevices(t *testing.T) {
	const hami, volcano = "hami.io/node-nvidia-register", "volcano.sh/node-vgpu-register"
	for name, c := range map[string]struct {
		labels, annotations map[string]string
		offered             map[string]string
		want                string // the devices
		note                string
	}{
		"nothing is shared": {offered: map[string]string{"nvidia.com/gpu": "1"}, want: "GPU-n-0 unknown 0 MiB of nvidia.com/gpu"},
		"HAMi, JSON": {
			annotations: map[string]string{hami: `[{"id":"GPU-a","count":10,"devmem":16384,"type":"NVIDIA-Tesla T4","health":true},{"id":"GPU-b","devmem":16384,"type":"NVIDIA-Tesla T4","numa":1,"health":false}]`},
			offered:     map[string]string{"nvidia.com/gpu": "20"},
			want:        "GPU-a NVIDIA-Tesla-T4 16384 MiB of nvidia.com/gpu, GPU-b NVIDIA-Tesla-T4 16384 MiB of nvidia.com/gpu, lost",
		},
		"HAMi, wrapped over lines": {
			annotations: map[string]string{hami: "GPU-a,10,16384,100,NVIDIA-Tesla\n  T4,0,true:\n GPU-b,10,16384,100,NVIDIA-Tesla T4,,true,1,hami-core:\n"},
			labels:      map[string]string{"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.count": "2", "nvidia.com/gpu.memory": "15360"},
			offered:     map[string]string{"nvidia.com/gpu": "20"},
			want:        "GPU-a Tesla-T4 16384 MiB of nvidia.com/gpu, GPU-b Tesla-T4 16384 MiB of nvidia.com/gpu",
		},
		"HAMi, too few fields": {
			annotations: map[string]string{hami: "GPU-a,10:"}, offered: map[string]string{"nvidia.com/gpu": "1"},
			want: "GPU-n-0 unknown 0 MiB of nvidia.com/gpu",
			note: "with a list of devices that cannot be read; its devices are those of its labels (2 fields for a device, want 5 or 7)",
		},
		"HAMi, five fields without health": {
			annotations: map[string]string{hami: "GPU-a,10,16384,100,T4:"}, note: "with a list of devices that cannot be read; its devices are those of its labels (5 fields for a device, want 5 or 7)",
		},
		"HAMi, twice the same": {
			annotations: map[string]string{hami: "GPU-a,10,16384,100,T4,0,true:GPU-a,10,16384,100,T4,0,true:"},
			note:        `with a list of devices that cannot be read; its devices are those of its labels (device "GPU-a" is listed twice)`,
		},
		"Volcano": {
			annotations: map[string]string{volcano: "GPU-a,10,16384,NVIDIA-Tesla T4,true,hami-core:GPU-b,10,16384,NVIDIA-Tesla T4,true:"},
			offered:     map[string]string{"volcano.sh/vgpu-number": "20", "volcano.sh/vgpu-memory": "32768", "nvidia.com/gpu": "0"},
			want:        "GPU-a NVIDIA-Tesla-T4 16384 MiB of volcano.sh/vgpu-number, GPU-b NVIDIA-Tesla-T4 16384 MiB of volcano.sh/vgpu-number",
		},
		"Volcano without a list": {
			offered: map[string]string{"volcano.sh/vgpu-number": "20"},
			note:    "that offer volcano.sh/vgpu-number and do not list their devices in the annotation volcano.sh/node-vgpu-register; tasks that need them are not placed there",
		},
		"Koordinator": {
			labels:  map[string]string{"node.koordinator.sh/gpu-model": "NVIDIA-A100"},
			offered: map[string]string{"koordinator.sh/gpu-core": "200", "koordinator.sh/gpu-memory-ratio": "200", "koordinator.sh/gpu-memory": "80Gi"},
			want:    "GPU-n-0 NVIDIA-A100 40960 MiB of nvidia.com/gpu, GPU-n-1 NVIDIA-A100 40960 MiB of nvidia.com/gpu",
		},
		"Koordinator beside a device plugin": {
			labels:  map[string]string{"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.count": "1", "nvidia.com/gpu.memory": "15360"},
			offered: map[string]string{"koordinator.sh/gpu": "100", "koordinator.sh/gpu-memory": "16Gi", "nvidia.com/gpu": "1"},
			want:    "GPU-n-0 Tesla-T4 15360 MiB of nvidia.com/gpu",
		},
		"Koordinator with devices of another vendor": {
			labels:  map[string]string{"node.koordinator.sh/gpu-vendor": "huawei"},
			offered: map[string]string{"koordinator.sh/gpu": "800"},
			note:    "with devices of Koordinator that are not from NVIDIA; tasks that need parts of them are not placed there (huawei)",
		},
		"Koordinator with too many": {offered: map[string]string{"koordinator.sh/gpu": "102500"}, want: "defect: koordinator.sh/gpu-memory-ratio 1025 devices are more than the 1024 that one node may have"},
		"Alibaba Cloud": {
			labels: map[string]string{"aliyun.accelerator/nvidia_name": "Tesla-V100"}, offered: map[string]string{"aliyun.com/gpu-mem": "32", "aliyun.com/gpu-count": "2"},
			want: "GPU-n-0 Tesla-V100 16384 MiB of aliyun.com/gpu-mem, GPU-n-1 Tesla-V100 16384 MiB of aliyun.com/gpu-mem",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: c.labels, Annotations: c.annotations}}
			o.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("8")}
			for k, v := range c.offered {
				o.Status.Allocatable[corev1.ResourceName(k)] = resource.MustParse(v)
			}
			n, _ := convert.CoreNode(o)
			var notes []string
			for _, x := range convert.SharedDevices(o, n) {
				text := x.Message
				if x.Detail != "" {
					text += " (" + x.Detail + ")"
				}
				notes = append(notes, text)
			}
			if got := strings.Join(notes, "\n"); got != c.note {
				t.Errorf("note %q, want %q", got, c.note)
			}
			if got := describeDevices(n); got != c.want {
				t.Errorf("have %s\nwant %s", got, c.want)
			}
			if len(n.Resources) != 1 || n.Resources[0].Name != cluster.CPU {
				t.Errorf("resources %+v, want cpu only", n.Resources)
			}
		})
	}
}

func describeDevices(n *cluster.Node) string {
	if n.Defect != nil {
		return "defect: " + n.Defect.Label + " " + n.Defect.Problem
	}
	var out []string
	for _, d := range n.Devices {
		text := fmt.Sprintf("%s %s %d MiB of %s", d.UUID, d.Product, d.Memory>>20, cmp.Or(d.Resource, n.DeviceResource))
		if d.Lost {
			text += ", lost"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// FuzzSharedDevices checks that no annotation makes SharedDevices panic, and that devices differ.
func FuzzSharedDevices(f *testing.F) {
	for _, s := range []string{"", "[", "[]", `[{"id":"a","devmem":1}]`, "GPU-a,10,16384,100,T4,0,true:", ":::", "a,1,9223372036854775807,x,true", "a,b,c,d,e,f,g"} {
		f.Add(s, int64(100))
	}
	f.Fuzz(func(t *testing.T, text string, percent int64) {
		o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{"hami.io/node-nvidia-register": text, "volcano.sh/node-vgpu-register": text}}}
		o.Status.Allocatable = corev1.ResourceList{"koordinator.sh/gpu": *resource.NewQuantity(percent, resource.DecimalSI), "aliyun.com/gpu-mem": *resource.NewQuantity(percent, resource.DecimalSI)}
		n, _ := convert.CoreNode(o)
		convert.SharedDevices(o, n)
		seen := map[string]bool{}
		for _, d := range n.Devices {
			if key := d.Resource + " " + d.UUID; d.UUID == "" || seen[key] {
				t.Errorf("device %q has no UUID, or is listed twice", key)
			} else {
				seen[key] = true
			}
		}
	})
}

// TestUnreadKeys checks which labels and annotations are said not to be read.
func TestUnreadKeys(t *testing.T) {
	for name, c := range map[string]struct {
		labels, annotations map[string]string
		want                []string
	}{
		"none": {labels: map[string]string{"app": "x"}, annotations: map[string]string{"prometheus.io/scrape": "true"}},
		"of both": {
			labels:      map[string]string{"kueue.x-k8s.io/queue-name": "q"},
			annotations: map[string]string{"nvidia.com/use-gputype": "A100", "hami.io/gpu-scheduler-policy": "binpack"},
			want:        []string{"the annotation hami.io/gpu-scheduler-policy", "the annotation nvidia.com/use-gputype", "the label kueue.x-k8s.io/queue-name"},
		},
		"of KAI":                        {annotations: map[string]string{"kai.scheduler/topology-required-placement": "rack"}, want: []string{"the annotation kai.scheduler/topology-required-placement"}},
		"of KAI, said by the PodGroup":  {annotations: map[string]string{"kai.scheduler/topology-required-placement": "rack", "pod-group-name": "g"}},
		"a label that is an annotation": {labels: map[string]string{"nvidia.com/use-gputype": "A100"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := gocmp.Diff(c.want, convert.UnreadKeys(c.labels, c.annotations)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
