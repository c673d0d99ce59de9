package nodes_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate/nodes"
	"github.com/berth-project/berth/internal/estimate/preset"
)

const gi = cluster.Bytes(1) << 30

func group(product string, count int, gib int64) cluster.GroupKey {
	return cluster.GroupKey{Product: product, Count: count, Memory: gib << 10, Resource: cluster.DefaultDeviceResource}
}

func replica(t *testing.T, name string) nodes.Replica {
	t.Helper()
	p, err := preset.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return nodes.Replica{Weights: p.Weights, BytesPerToken: p.BytesPerToken, Heads: p.Architecture.Heads}
}

func TestNodesNeeded(t *testing.T) {
	tests := map[string]struct {
		model string
		group cluster.GroupKey
		want  int
	}{
		"phi-4 on A10":                   {"phi-4", group("A10", 1, 24), 2},
		"phi-4 on A100-80":               {"phi-4", group("A100", 1, 80), 1},
		"qwen 32b on A10":                {"qwen2.5-coder-32b", group("A10", 1, 24), 4},
		"qwen 32b on 2 A10":              {"qwen2.5-coder-32b", group("A10", 2, 24), 2},
		"qwen 32b on A100-80":            {"qwen2.5-coder-32b", group("A100", 1, 80), 2},
		"llama 70b on A10":               {"llama-3.3-70b", group("A10", 1, 24), 9},
		"llama 70b on A100-80":           {"llama-3.3-70b", group("A100", 1, 80), 3},
		"llama 70b on 4 A100-80":         {"llama-3.3-70b", group("A100", 4, 80), 1},
		"deepseek on 8 A100-40":          {"deepseek-r1-0528", group("A100", 8, 40), 3},
		"deepseek on 8 H100-80":          {"deepseek-r1-0528", group("H100", 8, 80), 2},
		"deepseek on 8 H200-141":         {"deepseek-r1-0528", group("H200", 8, 141), 1},
		"qwen 32b on an A10 as reported": {"qwen2.5-coder-32b", cluster.GroupKey{Product: "A10", Count: 1, Memory: 23028}, 5},
		"qwen 32b on 2 A10 as reported":  {"qwen2.5-coder-32b", cluster.GroupKey{Product: "A10", Count: 2, Memory: 23028}, 3},
	}
	for name, tt := range tests {
		division, err := replica(t, tt.model).Divide(tt.group)
		if err != nil || division.Nodes != tt.want || division.Pipeline != tt.want {
			t.Errorf("%s: %+v (%v), want %d nodes", name, division, err, tt.want)
		}
	}
}

func TestDivisions(t *testing.T) {
	tests := map[string]struct {
		replica nodes.Replica
		group   cluster.GroupKey
		want    nodes.Division
	}{
		// 1.071 × 13.44 = 14.39424 GiB and 2.3 GiB + 16 MiB; 0.84 × 24 = 20.16 GiB.
		"13.44 GiB on an A10": {
			nodes.Replica{Weights: 14431090115, BytesPerToken: 8192}, group("A10", 1, 24),
			nodes.Division{GPUs: 1, Nodes: 1, Tensor: 1, Pipeline: 1, Need: 17942080925, Usable: 21646635171},
		},
		// 1.071 × 62.5 = 66.9375 GiB; a device has 67.2 − 2.3 − 0.3125 = 64.5875 GiB: two are needed.
		"62.5 GiB on one A100-80 a node": {
			nodes.Replica{Weights: 62*gi + gi/2, BytesPerToken: 163840}, group("A100", 1, 80),
			nodes.Division{GPUs: 2, Nodes: 2, Tensor: 1, Pipeline: 2, Need: 77483894375, Usable: 72155450572},
		},
		// 64 heads divide over the 4 devices of a node. The fixed part is counted for the 3 devices that are needed.
		"a node of 4": {
			nodes.Replica{Weights: 131 * gi, BytesPerToken: 0, Heads: 64}, group("A100", 4, 80),
			nodes.Division{GPUs: 3, Nodes: 1, Tensor: 4, Pipeline: 1, Need: 158055870235, Usable: 288621802291},
		},
		// 40 heads are divisible by 5, but not by 6 or 7.
		"heads that do not divide": {
			nodes.Replica{Weights: 61 * gi, BytesPerToken: 0, Heads: 40}, group("L4", 7, 24),
			nodes.Division{GPUs: 4, Nodes: 1, Tensor: 5, Pipeline: 1, Need: 80027051885, Usable: 151526446202},
		},
		"a slice that is large enough": {
			nodes.Replica{Weights: 4 * gi, BytesPerToken: 8192, Heads: 32}, group("A100-MIG-1g.10gb", 7, 10),
			nodes.Division{GPUs: 1, Nodes: 1, Tensor: 1, Pipeline: 1, Need: 7086293386, Usable: 9019431321},
		},
	}
	for name, tt := range tests {
		got, err := tt.replica.Divide(tt.group)
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

func TestRefusalsNameBothNumbers(t *testing.T) {
	shared := group("A10-SHARED", 4, 24)
	shared.Strategy, shared.Replicas = "time-slicing", 4
	tests := map[string]struct {
		replica nodes.Replica
		group   cluster.GroupKey
		want    string
	}{
		"slice":         {nodes.Replica{Weights: 8 * gi}, group("A100-MIG-1g.10gb", 7, 10), "one replica needs 10.87 GiB, and A100-MIG-1g.10gb gives 8.4 GiB: MIG slices cannot be combined"},
		"shared":        {nodes.Replica{Weights: 20 * gi}, shared, "one replica needs 23.72 GiB, and A10-SHARED gives 20.16 GiB: shared replicas cannot be combined"},
		"no room":       {nodes.Replica{Weights: gi, BytesPerToken: 1 << 20, Tokens: 8192}, group("T4", 1, 8), "a T4 gives a model 6.72 GiB, but 8192 tokens and the runtime take 10.3 GiB of each; set a shorter context, or use devices with more memory"},
		"weights":       {nodes.Replica{}, group("A10", 1, 24), "the size of the weights is not known; set the memory explicitly"},
		"negative":      {nodes.Replica{Weights: gi, Tokens: -1}, group("A10", 1, 24), "bytes per token 0, tokens -1 and heads 0 cannot be negative"},
		"empty group":   {nodes.Replica{Weights: gi}, cluster.GroupKey{Product: "A10"}, "group A10 × 0 has no device with memory"},
		"no memory":     {nodes.Replica{Weights: gi}, group("unknown", 2, 0), "the memory of the devices of group unknown × 2 is not known"},
		"absurd weight": {nodes.Replica{Weights: 1 << 62}, group("T4", 1, 3), "at most 1000000 are allowed"},
	}
	for name, tt := range tests {
		_, err := tt.replica.Divide(tt.group)
		if err == nil || (err.Error() != tt.want && name != "absurd weight") {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}

// The nodes of a division have the memory that it needs, one device less is not enough,
// and more tokens never need fewer nodes.
func TestDivisionsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := nodes.Replica{
			Weights:       cluster.Bytes(rapid.Int64Range(1, 2000<<30).Draw(t, "weights")),
			BytesPerToken: rapid.Int64Range(0, 1<<20).Draw(t, "bytes"),
			Tokens:        rapid.IntRange(1, 100_000).Draw(t, "tokens"),
			Heads:         rapid.IntRange(1, 128).Draw(t, "heads"),
		}
		g := group("X", rapid.IntRange(1, 16).Draw(t, "count"), rapid.Int64Range(4, 192).Draw(t, "memory"))
		division, err := r.Divide(g)
		if err != nil {
			return
		}
		if division.Need > division.Usable*cluster.Bytes(division.Nodes) {
			t.Fatalf("%+v needs more than it has", division)
		}
		if division.GPUs > division.Nodes*g.Count || division.GPUs <= (division.Nodes-1)*g.Count || r.Heads%division.Tensor != 0 || division.Tensor > g.Count {
			t.Fatalf("%+v is inconsistent", division)
		}
		if each := division.Usable / cluster.Bytes(g.Count); division.GPUs > 1 && division.Need < each*cluster.Bytes(division.GPUs-1) {
			t.Fatalf("%+v: fewer devices would be enough", division)
		}
		r.Tokens *= 2
		if more, err := r.Divide(g); err == nil && more.Nodes < division.Nodes {
			t.Fatalf("%+v for twice the tokens of %+v", more, division)
		}
	})
}

// TestTableOfNodes checks the table of docs/models.md.
func TestTableOfNodes(t *testing.T) {
	groups := []cluster.GroupKey{
		group("A10, 24 GiB", 1, 24), group("A10, 24 GiB", 2, 24), {Product: "A10, 23,028 MiB", Count: 1, Memory: 23028}, group("A100, 80 GiB", 1, 80),
		group("A100, 80 GiB", 4, 80), group("A100, 40 GiB", 8, 40), group("H100, 80 GiB", 8, 80), group("H200, 141 GiB", 8, 141),
	}
	var b strings.Builder
	b.WriteString("<!-- nodes -->\n| nodes with |")
	for _, g := range groups {
		fmt.Fprintf(&b, " %d × %s |", g.Count, g.Product)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(groups)) + "\n")
	for _, m := range []string{"phi-4", "qwen2.5-coder-32b", "llama-3.3-70b", "deepseek-r1-0528"} {
		fmt.Fprintf(&b, "| %s |", m)
		for _, g := range groups {
			division, err := replica(t, m).Divide(g)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, " %d |", division.Nodes)
		}
		b.WriteString("\n")
	}
	b.WriteString("<!-- end nodes -->\n")
	page, err := os.ReadFile("../../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), b.String()) {
		t.Errorf("docs/models.md should have this table:\n%s", b.String())
	}
}
