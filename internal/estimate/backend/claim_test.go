package backend

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
)

func TestClaim(t *testing.T) {
	const gi = cluster.Bytes(1) << 30
	tests := map[string]struct {
		backend       string
		share         cluster.Milli
		each, dynamic cluster.Bytes
		want          Claim
	}{
		"a share of everything":         {"vllm", 0, 10 * gi, 2 * gi, Claim{Share: 900, Enough: 10 * gi}},
		"utilization is set":            {"vllm", 500, 10 * gi, 2 * gi, Claim{Share: 500, Enough: 10 * gi}},
		"bytes":                         {"custom", 0, 10 * gi, 2 * gi, Claim{Enough: 10 * gi}},
		"weights within the share":      {"sglang", 0, 89 * gi, gi, Claim{Share: 1000, Enough: 100*gi + 2, Static: 88 * gi, Fraction: 880}},
		"activations outside the share": {"sglang", 0, 13 * gi, 12 * gi, Claim{Share: 1000, Enough: 100*gi + 2, Static: gi, Fraction: 880}},
		"a smaller share leaves some":   {"sglang", 480, 49 * gi, gi, Claim{Share: 600, Enough: 60*gi + 2, Static: 48 * gi, Fraction: 480}},
	}
	for name, tt := range tests {
		if diff := cmp.Diff(tt.want, find(t, tt.backend).Claim(tt.share, &estimate.Model{}, estimate.Serving{}, Accelerator{}, tt.each, tt.dynamic)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	// Of an H100, 469 MiB are not usable. What can be allocated is claimed in full.
	h100 := Accelerator{Product: "NVIDIA-H100-80GB-HBM3", Type: "cuda", Memory: 81559 << 20, Unusable: 469 << 20}
	encoder := &estimate.Model{Architecture: &estimate.Architecture{Encoder: true}}
	for _, b := range []string{"custom", "vllm"} {
		for each, want := range map[cluster.Bytes]cluster.Bytes{(81559 - 469) << 20: h100.Memory, (81559 - 469) << 19: h100.Memory / 2, (81559-469)<<20 + 1: h100.Memory + 2} {
			if c := find(t, b).Claim(0, encoder, estimate.Serving{}, h100, each, 0); c.Share != 0 || c.Enough != want {
				t.Errorf("%s: %d bytes claim %+v, want %d", b, each, c, want)
			}
		}
	}
	if s := find(t, "custom").WithDefaults(encoder, estimate.Serving{}, h100); s.Overhead != estimate.RuntimeOverhead {
		t.Errorf("custom takes %d bytes of a device for its runtime, want %d", s.Overhead, estimate.RuntimeOverhead)
	}
	for name, tt := range map[string]struct {
		claim            Claim
		reserved, of, in cluster.Bytes
	}{
		"all of it":         {Claim{}, 0, 100, 100},
		"what is left":      {Claim{}, 30, 70, 70},
		"a share":           {Claim{Share: 900}, 10, 90, 90},
		"more than is left": {Claim{Share: 900}, 11, 89, 89},
		"a static part":     {Claim{Share: 1000, Fraction: 880}, 0, 100, 88},
	} {
		if of := tt.claim.BytesOf(100, tt.reserved); of != tt.of || tt.claim.StaticBytes(of) != tt.in {
			t.Errorf("%s: claimed %d, static share %d", name, of, tt.claim.StaticBytes(of))
		}
	}
}
