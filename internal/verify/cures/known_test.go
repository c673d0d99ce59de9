package cures

import (
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestKnownCures checks all answers about inputs for which an answer was wrong or a cure was
// missed.
func TestKnownCures(t *testing.T) {
	const nodes = `
- {apiVersion: berth.dev/v1alpha1, kind: Node, metadata: {name: a}, spec: {resources: {cpu: 64, memory: 256Gi}, devices: {product: NVIDIA-H100, count: 8, memory: 80Gi}}}`
	const pods = `
- {apiVersion: v1, kind: Node, metadata: {name: a, labels: {kubernetes.io/hostname: a, nvidia.com/gpu.count: "2", nvidia.com/gpu.memory: "81920", nvidia.com/gpu.product: NVIDIA-A100}}, status: {allocatable: {cpu: "64", memory: 256Gi, pods: "110", nvidia.com/gpu: "2"}, conditions: [{type: Ready, status: "True"}]}}`
	for name, c := range map[string]struct {
		items, workload string
		cure            string // the arguments of a change that must be listed
	}{
		"a setting of a model shrinks the replica that runs": {
			items: nodes + `
- {apiVersion: berth.dev/v1alpha1, kind: Queue, metadata: {name: q}, spec: {limits: {nvidia.com/gpu: 1}}}
- apiVersion: berth.dev/v1alpha1
  kind: Model
  metadata: {name: m}
  spec: {queue: q, replicas: 2, source: {preset: phi-4}}
  status: {replicas: [{replica: 0, form: 1 device, placements: [{task: server-0, node: a, devices: [2]}]}]}`,
			workload: "model/m-1", cure: "--set model/m.spec.gpuMemoryUtilization=0.50",
		},
		"a smaller share for a job of which a task runs": {
			items: `
- {apiVersion: berth.dev/v1alpha1, kind: Node, metadata: {name: a}, spec: {resources: {cpu: 64, memory: 256Gi}, devices: {product: NVIDIA-H100, count: 1, memory: 80Gi}}}
- apiVersion: berth.dev/v1alpha1
  kind: Job
  metadata: {name: x}
  spec: {minMember: 1, tasks: [{name: w, replicas: 2, devices: {share: "0.6"}}]}
  status: {placements: [{task: w-0, node: a, devices: [0]}]}`,
			workload: "job/x", cure: `--set job/x.spec.tasks[0].devices.share="0.4"`,
		},
		"no node has a slice of the profile": {
			items: `
- {apiVersion: berth.dev/v1alpha1, kind: Node, metadata: {name: a}, spec: {resources: {cpu: 64, memory: 256Gi}, devices: {product: NVIDIA-A100, count: 2, memory: 80Gi, partitions: [{profile: 1g.10gb, count: 2, memory: 10Gi}]}}}
- {apiVersion: berth.dev/v1alpha1, kind: Job, metadata: {name: x}, spec: {tasks: [{name: w, devices: {partition: 3g.40gb}}]}}`,
			workload: "job/x", cure: "--set job/x.spec.tasks[0].devices.partition=1g.10gb",
		},
		"a larger slice": {
			items: `
- {apiVersion: berth.dev/v1alpha1, kind: Node, metadata: {name: a}, spec: {resources: {cpu: 64, memory: 256Gi}, devices: {product: NVIDIA-A100, count: 1, memory: 80Gi, partitions: [{profile: 1g.10gb, count: 1, memory: 10Gi}, {profile: 3g.40gb, count: 1, memory: 40Gi}]}}}
- {apiVersion: berth.dev/v1alpha1, kind: Job, metadata: {name: y}, spec: {tasks: [{name: w, devices: {partition: 1g.10gb}}]}, status: {placements: [{task: w-0, node: a, devices: [0]}]}}
- {apiVersion: berth.dev/v1alpha1, kind: Job, metadata: {name: x}, spec: {tasks: [{name: w, devices: {partition: 1g.10gb}}]}}`,
			workload: "job/x", cure: "--set job/x.spec.tasks[0].devices.partition=3g.40gb",
		},
		"a smaller fraction of a pod": {
			items: pods + `
- {apiVersion: v1, kind: Pod, metadata: {name: y, namespace: d, annotations: {gpu-fraction: "0.6", gpu-fraction-num-devices: "2"}}, spec: {nodeName: a, containers: [{name: m}]}, status: {phase: Running}}
- {apiVersion: v1, kind: Pod, metadata: {name: x, namespace: d, annotations: {gpu-fraction: "0.5"}}, spec: {containers: [{name: m}]}}`,
			workload: "pod/d/x", cure: `--set pod/d/x.metadata.annotations.gpu-fraction="0.4"`,
		},
		"less device memory of a pod": {
			items: pods + `
- {apiVersion: v1, kind: Pod, metadata: {name: x, namespace: d, annotations: {gpu-memory: "90000"}}, spec: {containers: [{name: m}]}}`,
			workload: "pod/d/x", cure: `--set pod/d/x.metadata.annotations.gpu-memory="81920"`,
		},
		"fewer devices, and less of each": {
			items: pods + `
- {apiVersion: v1, kind: Pod, metadata: {name: x, namespace: d}, spec: {containers: [{name: m, resources: {limits: {nvidia.com/gpu: 3, nvidia.com/gpumem: 90000}}}]}}`,
			workload: "pod/d/x", cure: `--set pod/d/x.spec.containers[0].resources.limits.nvidia.com/gpumem="81920" --set pod/d/x.spec.containers[0].resources.limits.nvidia.com/gpu="2"`,
		},
		"a minimum applies in all cells": {
			items: `
- {apiVersion: berth.dev/v1alpha1, kind: Node, metadata: {name: a}, spec: {cell: c1, resources: {cpu: 64, memory: 256Gi}}}
- apiVersion: berth.dev/v1alpha1
  kind: Job
  metadata: {name: x}
  spec: {cells: [c2, c1], tasks: [{name: w}, {name: v, devices: {count: 1}}]}`,
			workload: "job/x", cure: "--set job/x.spec.minMember=1",
		},
		"a quota with which the queue may reclaim": {
			items: nodes + `
- {apiVersion: berth.dev/v1alpha1, kind: Queue, metadata: {name: most}, spec: {quota: {nvidia.com/gpu: 6}}}
- {apiVersion: berth.dev/v1alpha1, kind: Queue, metadata: {name: few}, spec: {quota: {nvidia.com/gpu: 1}}}
- apiVersion: berth.dev/v1alpha1
  kind: Job
  metadata: {name: y}
  spec: {queue: most, preemptible: true, minMember: 1, tasks: [{name: w, replicas: 4, devices: {count: 2}}]}
  status: {placements: [{task: w-0, node: a, devices: [0, 1]}, {task: w-1, node: a, devices: [2, 3]}, {task: w-2, node: a, devices: [4, 5]}, {task: w-3, node: a, devices: [6, 7]}]}
- {apiVersion: berth.dev/v1alpha1, kind: Job, metadata: {name: x}, spec: {queue: few, preemptible: false, tasks: [{name: w, devices: {count: 2}}]}}`,
			workload: "job/x", cure: `--set queue/few.spec.quota.nvidia.com/gpu="2"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var in Input
			if err := yaml.Unmarshal([]byte(c.items), &in.Objects); err != nil {
				t.Fatal(err)
			}
			r := Check(in, 10)
			for _, f := range slices.Concat(r.Problems, r.Missed) {
				t.Errorf("%s: %s", f.Workload, f.Text)
			}
			report, err := in.why(c.workload)
			if err != nil {
				t.Fatal(err)
			}
			var listed []string
			for _, trial := range report.Trials {
				if trial.Fits {
					listed = append(listed, strings.Join(trial.Arguments, " "))
				}
			}
			if !slices.Contains(listed, c.cure) {
				t.Errorf("changes that help %q, want %s", listed, c.cure)
			}
		})
	}
}

// TestKnownSeeds checks all answers about random inputs for which an answer was wrong or a cure was
// missed.
func TestKnownSeeds(t *testing.T) {
	for _, seed := range []uint64{30228, 40070, 50240} {
		in, err := Random(seed)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		r := Check(in, 100)
		for _, f := range slices.Concat(r.Problems, r.Missed) {
			t.Errorf("seed %d: %s: %s", seed, f.Workload, f.Text)
		}
		if r.Refusals == 0 {
			t.Errorf("seed %d: nothing is refused", seed)
		}
	}
}
