package main

import (
	"encoding/json"
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/kube/internal/crdtest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var cases = flag.Int("cases", 400, "how many random queues the API server and the reader of manifests are compared with")

// dice draws random fields of queues: usual values, values at limits, and wrong ones.
type dice struct{ *rand.Rand }

func pick[T any](d dice, list ...T) T { return list[d.IntN(len(list))] }

func (d dice) resource() string {
	return pick(d, "cpu", "cpu", "memory", "pods", "ephemeral-storage", "hugepages-2Mi", "nvidia.com/gpu", "nvidia.com/gpu", "nvidia.com/gpu:H100",
		"nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb", "amd.com/gpu", "gpu.intel.com/xe", "gpu.intel.com/i915", "habana.ai/gaudi", "huawei.com/Ascend910", "example.com/npu", "example.com/npu:X1",
		"cpu:x", "nvidia.com/gpu:", ":", "a:b/c", "größe", "two words", "tab\t", "zero\u200bwidth", "")
}

func (d dice) amount() any {
	if d.IntN(2) == 0 {
		return pick[any](d, 0, 1, 2, 8, 1<<30, 1<<30+1, int64(1)<<60, int64(1)<<60+1, -1)
	}
	number := pick(d, "", "0", "1", "8", "007", "1.5", ".5", "2.", ".", "1073741824.001", "1152921504606846976", "1152921504606846977", "1e", "0x10", "1_0", "unlimited", "Unlimited", "abc", "٣", "12345678901234567890123456789012345678901")
	unit := pick(d, "", "", "", "m", "n", "u", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E3", "e-3", "e30", "e31", "e-31", "e+31", "e031", "e999999999", "mi", "B")
	return pick(d, "", "", "", "", "+", "-", " ") + number + unit + pick(d, "", "", "", "", " ")
}

func (d dice) amounts(most int) map[string]any {
	out := map[string]any{}
	for range d.IntN(most + 1) {
		out[d.resource()] = d.amount()
	}
	return out
}

func (d dice) duration() any {
	return pick[any](d, "10m", "1h30m", "1.5h", ".5s", "5.s", "+1h", "1ns", "0.1ns", "1us", "1µs", "1μs", "0s", "-1h", "0", "10", 10, "1d", "", "h", "1h ", "9999999h", "2562047h", "2562048h")
}

func (d dice) weight() any { return pick[any](d, 0, 1, 3, 100_000, 100_001, -1, "1", nil) }

// spec draws a few fields, so that most specs have one wrong field at most.
func (d dice) spec() map[string]any {
	out := map[string]any{}
	for range 1 + d.IntN(2) {
		switch d.IntN(7) {
		case 0:
			out["tier"] = pick[any](d, "Guaranteed", "Standard", "Scavenger", "", "standard", "BestEffort", nil)
		case 1:
			out["priority"] = pick[any](d, 0, -5, int64(1)<<31-1, int64(1)<<31, -int64(1)<<31, -int64(1)<<31-1, "1", nil)
		case 2:
			out["weight"] = d.weight()
		case 3:
			out["overQuotaWeight"] = map[string]any{d.resource(): pick[any](d, 0, 3, 100_000, 100_001, -1, "1")}
		case 4:
			out["minRunTime"] = map[string]any{pick(d, "beforePreempt", "beforeReclaim", "before"): d.duration()}
		case 5:
			out["quota"] = d.amounts(2)
		case 6:
			out["quota"], out["limits"] = d.amounts(1), d.amounts(2)
		}
	}
	return out
}

// testSameAsReader compares the API server with the reader of manifests on random queues:
// both accept a queue, or both reject it. Null in place of an amount or a weight is not drawn:
// the API server removes the entry, and the reader takes it for 0. Neither are fractions from
// 2^52 on (see isWhole).
func (s server) testSameAsReader(t *testing.T) {
	d := dice{rand.New(rand.NewPCG(1, 2))}
	accepted, wrong := 0, 0
	for range *cases {
		data, err := json.Marshal(map[string]any{"apiVersion": "berth.dev/v1alpha1", "kind": "Queue", "metadata": map[string]any{"name": "a"}, "spec": d.spec()})
		if err != nil {
			t.Fatal(err)
		}
		_, reader := manifest.Parse("f", data)
		_, server := s.create(t.Context(), crdtest.Object(t, string(data)), metav1.DryRunAll)
		if reader == nil {
			accepted++
		}
		if (reader == nil) != (server == nil) {
			if t.Errorf("%s\nreader: %v\nserver: %s", data, reader, causes(server)); wrong > 20 {
				t.Fatal("and more")
			}
			wrong++
		}
	}
	t.Logf("%d of %d queues were accepted", accepted, *cases)
	if accepted < *cases/4 || accepted > *cases*3/4 {
		t.Errorf("%d of %d queues were accepted; the test needs more of both kinds", accepted, *cases)
	}
}
