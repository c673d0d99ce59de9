package manifest

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/google/go-cmp/cmp"
)

// A pod requests what the Kubernetes scheduler counts after the API server has set the
// missing requests. Amounts of cpu are in thousandths.
func TestPodRequests(t *testing.T) {
	const gi = 1 << 30
	tests := map[string]struct {
		spec              string
		cpu, memory, huge int64
		devices           int
	}{
		"requests": {spec: "containers: [{resources: {requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 2, memory: 2Gi}}}]", cpu: 1000, memory: gi},
		"limits alone": {spec: "containers: [{resources: {limits: {cpu: 2, memory: 2Gi, nvidia.com/gpu: 1}}}]",
			cpu: 2000, memory: 2 * gi, devices: 1},
		"each resource by itself":            {spec: "containers: [{resources: {requests: {cpu: 1}, limits: {cpu: 2, memory: 2Gi}}}]", cpu: 1000, memory: 2 * gi},
		"a request of 0 is one":              {spec: "containers: [{resources: {requests: {cpu: 0}, limits: {cpu: 2}}}]"},
		"each container by itself":           {spec: "containers: [{resources: {requests: {cpu: 1}, limits: {memory: 1Gi}}}, {resources: {limits: {cpu: 2}}}]", cpu: 3000, memory: gi},
		"a small init container":             {spec: "initContainers: [{resources: {limits: {cpu: 1}}}], containers: [{resources: {limits: {cpu: 2}}}]", cpu: 2000},
		"a large init container":             {spec: "initContainers: [{resources: {limits: {cpu: 4}}}, {resources: {limits: {cpu: 3}}}], containers: [{resources: {limits: {cpu: 2}}}]", cpu: 4000},
		"sidecars add up":                    {spec: "initContainers: [{restartPolicy: Always, resources: {limits: {cpu: 1}}}, {restartPolicy: Always, resources: {limits: {cpu: 1}}}], containers: [{resources: {limits: {cpu: 2}}}]", cpu: 4000},
		"init after a sidecar":               {spec: "initContainers: [{restartPolicy: Always, resources: {limits: {cpu: 1}}}, {resources: {limits: {cpu: 4}}}], containers: [{resources: {limits: {cpu: 2}}}]", cpu: 5000},
		"init before a sidecar":              {spec: "initContainers: [{resources: {limits: {cpu: 4}}}, {restartPolicy: Always, resources: {limits: {cpu: 1}}}], containers: [{resources: {limits: {cpu: 2}}}]", cpu: 4000},
		"overhead":                           {spec: "overhead: {cpu: 250m}, containers: [{resources: {limits: {cpu: 2}}}]", cpu: 2250},
		"the pod requests":                   {spec: "resources: {requests: {cpu: 3}, limits: {cpu: 4}}, containers: [{resources: {limits: {cpu: 2, memory: 1Gi}}}]", cpu: 3000, memory: gi},
		"the pod has limits alone":           {spec: "resources: {limits: {cpu: 4, memory: 2Gi}}, containers: [{resources: {requests: {cpu: 1}}}]", cpu: 1000, memory: 2 * gi},
		"huge pages are the limit":           {spec: "resources: {limits: {hugepages-2Mi: 4Gi}}, containers: [{resources: {limits: {hugepages-2Mi: 2Gi}}}]", huge: 4 * gi},
		"devices of the pod are not counted": {spec: "resources: {limits: {nvidia.com/gpu: 4}}, containers: [{resources: {limits: {nvidia.com/gpu: 2}}}]", devices: 2},
	}
	for name, tc := range tests {
		b, err := Parse("f", []byte(pod("", "{"+tc.spec+"}")))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		s, err := b.State()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		shape := s.Job("pod/default/p").Tasks()[0].Shape
		want := cluster.Resources{{Name: "cpu", Value: tc.cpu}}
		if tc.huge > 0 {
			want = append(want, cluster.Amount{Name: "hugepages-2Mi", Value: tc.huge})
		}
		want = append(want, cluster.Amount{Name: "memory", Value: tc.memory})
		if diff := cmp.Diff(want, shape.Resources); diff != "" || shape.Need.Devices != tc.devices {
			t.Errorf("%s: %d devices, want %d (-want +got)\n%s", name, shape.Need.Devices, tc.devices, diff)
		}
	}
}

// Scores count the default of each container that requests no cpu or no memory.
func TestPodLeftOut(t *testing.T) {
	tests := map[string]struct {
		spec        string
		cpu, memory int64 // cpu in thousandths, memory in MiB
	}{
		"nothing":                 {"containers: [{}]", 100, 200},
		"each container":          {"containers: [{}, {}, {}]", 300, 600},
		"those that request none": {"containers: [{resources: {requests: {cpu: 1}}}, {resources: {requests: {memory: 1Gi}}}]", 100, 200},
		"all is requested":        {"containers: [{resources: {requests: {cpu: 1}, limits: {memory: 1Gi}}}]", 0, 0},
		"a request of 0 is one":   {"containers: [{resources: {requests: {cpu: 0}}}]", 0, 200},
		"sidecars":                {"initContainers: [{restartPolicy: Always}], containers: [{}]", 200, 400},
		"init containers end":     {"initContainers: [{}, {}], containers: [{}]", 100, 200},
		"a large init container":  {"initContainers: [{resources: {requests: {cpu: 4}}}], containers: [{}]", 0, 200},
		"the pod requests":        {"resources: {requests: {cpu: 3}}, containers: [{}, {}]", 0, 400},
		"overhead":                {"overhead: {cpu: 250m}, containers: [{}]", 100, 200},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b, err := Parse("f", []byte(pod("", "{"+tc.spec+"}")))
			if err != nil {
				t.Fatal(err)
			}
			s, err := b.State()
			if err != nil {
				t.Fatal(err)
			}
			got := s.Job("pod/default/p").Tasks()[0].Shape.LeftOut
			if got.Of("cpu") != tc.cpu || got.Of("memory") != tc.memory<<20 {
				t.Errorf("%v; want %d of cpu and %d MiB", got, tc.cpu, tc.memory)
			}
		})
	}
}
