package model_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/model"
)

func TestRelaxations(t *testing.T) {
	open := []string{"1: spread over several nodes (placement.distributed: true) [15]"}
	less := []string{"1: with gpuMemoryUtilization 0.75 [16]", "1: with gpuMemoryUtilization 0.50 [17]", "1: with gpuMemoryUtilization 0.25 [18]"}
	share := append([]string{"1: with gpuMemoryUtilization 0.95 [10]"}, less...)
	tests := map[string]struct {
		spec *model.Spec
		want []string
	}{
		"everything is set": {
			spec(t, "vllm", "", use(toy()), draft(8), selected("a:cuda:0"), func(s *model.Spec) { s.Serving.Sequences, s.Serving.Tensor = 3, 2 }),
			append([]string{
				"3: with context ≤ 1,024 instead of 4,096 [65]", "2: with 1 sequence at once instead of 3 [60]",
				"1: with an 8-bit KV cache (kvCacheBits: 8) [15]", "1: without the draft model [30]",
				"1: with the parallelism left open [10]", "1: with the selection of devices lifted [12]",
			}, append(open, share...)...),
		},
		"everything is at its minimum": {
			spec(t, "vllm", "", use(toy()), tokens(1024), distributed, offload, func(s *model.Spec) { s.Serving.KVBits, s.Utilization = 8, 950 }),
			less,
		},
		"memory is set":            {spec(t, "custom", "", total(8)), []string{"1: without a device (placement.cpuOffload: true) [40]"}},
		"memory is set, llama.cpp": {spec(t, "llamacpp", "", total(8)), append(open, "1: without a device (placement.cpuOffload: true) [40]")},
		"layers":                   {spec(t, "llamacpp", "", use(stack()), func(s *model.Spec) { s.Serving.KVBits = 8 }), append(open, "1: with layers in the node's memory (placement.cpuOffload: true) [40]")},
		"a static share":           {spec(t, "sglang", "", total(8)), open},
		"utilization is set":       {spec(t, "vllm", "", total(8), func(s *model.Spec) { s.Utilization = 800 }), append(open, share...)},
		"whole nodes":              {spec(t, "vllm", "", use(toy()), wholeNodes), []string{"1: with context ≤ 1,024 instead of 2,048 [50]", "1: with an 8-bit KV cache (kvCacheBits: 8) [15]"}},
		"whole nodes, several":     {spec(t, "vllm", "", total(8), wholeNodes, replicas(4)), []string{"3: with 1 replica instead of 4 [95]"}},
		"whole nodes, 3,000 left":  {spec(t, "vllm", "", use(toy()), wholeNodes, tokens(3000), func(s *model.Spec) { s.Serving.KVBits = 4 }), []string{"2: with context ≤ 1,024 instead of 3,000 [59]"}},
	}
	for name, tt := range tests {
		var got []string
		for _, k := range (&model.Result{Spec: tt.spec}).Relaxations() {
			r := k.At(0)
			got = append(got, fmt.Sprintf("%d: %s [%d]", k.Steps, r.Text, r.Cost))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A shorter context is compared with the one that is assumed: the default, if no node can hold the
// 131,072 tokens that the model supports.
func TestRelaxationsOfTheDefaultContext(t *testing.T) {
	for name, tt := range map[string]struct {
		spec *model.Spec
		want string
	}{
		"default": {spec(t, "vllm", "llama-3.1-8b"), "31: with context ≤ 1,024 instead of 32,768"},
		"given":   {spec(t, "vllm", "llama-3.1-8b", tokens(65536)), "63: with context ≤ 1,024 instead of 65,536"},
	} {
		k := convert(t, tt.spec, groups(a10s("a", 1))).Relaxations()[0]
		if got := fmt.Sprintf("%d: %s", k.Steps, k.At(0).Text); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// Every step gives up less than the step before it and requests at least as much. The
// spec itself is not changed.
func TestRelaxationsAreMonotone(t *testing.T) {
	g := groups(a10s("a", 4))
	for _, s := range []*model.Spec{
		spec(t, "vllm", "phi-4", func(s *model.Spec) { s.Serving.Sequences = 20 }),
		spec(t, "vllm", "phi-4", wholeNodes, tokens(16384), replicas(9)),
	} {
		before := *s
		now := convert(t, s, g)
		for _, k := range (&model.Result{Spec: s}).Relaxations() {
			least, most := 1000, cluster.Bytes(0)
			if k.Steps == 1 {
				continue // a single change is not a series
			}
			for i := range k.Steps {
				r := k.At(i)
				need := requested(convert(t, r.Spec, g))
				if r.Cost > least || need < most || need > requested(now) {
					t.Errorf("step %d, %s: gives up %d after %d, requests %d after %d, of %d", i, r.Text, r.Cost, least, need, most, requested(now))
				}
				least, most = r.Cost, need
			}
		}
		if diff := cmp.Diff(before.Serving, s.Serving); diff != "" || before.Replicas != s.Replicas {
			t.Errorf("the model was changed:\n%s", diff)
		}
	}
}

// requested returns the device memory that all replicas together request in the first
// form.
func requested(p *model.Result) cluster.Bytes {
	sum := cluster.Bytes(0)
	for _, j := range p.Jobs {
		if w := j.Alternatives[0].Whole; w != nil {
			sum += w.Memory
			continue
		}
		sum += p.Forms[0].PerDevice
	}
	return sum
}
