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
