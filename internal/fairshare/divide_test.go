package fairshare

import (
	"math"
	"slices"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// ask returns an entitlement without quota and limit.
func ask(name string, request int64) entitlement {
	return entitlement{Name: name, Weight: 1, Limit: -1, Request: request}
}

func (c entitlement) quota(v int64) entitlement       { c.Quota = v; return c }
func (c entitlement) limit(v int64) entitlement       { c.Limit = v; return c }
func (c entitlement) weigh(v int64) entitlement       { c.Weight = v; return c }
func (c entitlement) first(p int32) entitlement       { c.Priority = p; return c }
func (c entitlement) born(at int64) entitlement       { c.Created = at; return c }
func (c entitlement) tier(t cluster.Tier) entitlement { c.Tier = t; return c }

func TestDivide(t *testing.T) {
	const guaranteed, scavenger = cluster.TierGuaranteed, cluster.TierScavenger
	type list = []entitlement
	tests := map[string]struct {
		total        int64
		entitlements list
		want         []Allotment
	}{
		"no queue":              {8, nil, []Allotment{}},
		"nothing":               {0, list{ask("a", 5).quota(5)}, []Allotment{{0, 0, NoneLeft}}},
		"asks for nothing":      {8, list{ask("a", 0).quota(5)}, []Allotment{{0, 0, Satisfied}}},
		"within quota":          {8, list{ask("a", 3).quota(5)}, []Allotment{{3, 0, Satisfied}}},
		"beyond quota":          {8, list{ask("a", 9).quota(5)}, []Allotment{{5, 3, NoneLeft}}},
		"up to the limit":       {8, list{ask("a", 9).quota(2).limit(4)}, []Allotment{{2, 2, AtLimit}}},
		"forbidden":             {8, list{ask("a", 9).limit(0)}, []Allotment{{0, 0, AtLimit}}},
		"three to one":          {8, list{ask("a", 9).weigh(3), ask("b", 9)}, []Allotment{{0, 6, NoneLeft}, {0, 2, NoneLeft}}},
		"quotas, then weights":  {10, list{ask("a", 9).quota(2).weigh(3), ask("b", 9).quota(4)}, []Allotment{{2, 3, NoneLeft}, {4, 1, NoneLeft}}},
		"what one leaves":       {12, list{ask("a", 1).weigh(4), ask("b", 9), ask("c", 9)}, []Allotment{{0, 1, Satisfied}, {0, 6, NoneLeft}, {0, 5, NoneLeft}}},
		"left over in rounds":   {20, list{ask("a", 2).weigh(2), ask("b", 5), ask("c", 50)}, []Allotment{{0, 2, Satisfied}, {0, 5, Satisfied}, {0, 13, NoneLeft}}},
		"weightless":            {12, list{ask("a", 9).quota(2).weigh(0), ask("b", 9)}, []Allotment{{2, 0, AtQuota}, {0, 9, Satisfied}}},
		"no quota, no weight":   {8, list{ask("a", 9).weigh(0), ask("b", 3).weigh(0)}, []Allotment{{0, 0, AtQuota}, {0, 0, AtQuota}}},
		"weightless and short":  {4, list{ask("a", 9).quota(6).weigh(0), ask("b", 9).quota(6)}, []Allotment{{2, 0, NoneLeft}, {2, 0, NoneLeft}}},
		"limit below the quota": {8, list{ask("a", 9).quota(4).limit(3).weigh(0)}, []Allotment{{3, 0, AtLimit}}},
		"unlimited":             {8, list{ask("a", 9).quota(math.MaxInt64), ask("b", 9).weigh(9)}, []Allotment{{8, 0, NoneLeft}, {0, 0, NoneLeft}}},
		"unlimited and limited": {8, list{ask("a", 9).quota(math.MaxInt64).limit(3), ask("b", 9)}, []Allotment{{3, 0, AtLimit}, {0, 5, NoneLeft}}},
		"unlimited, both":       {8, list{ask("a", 90).quota(math.MaxInt64), ask("b", 9).quota(math.MaxInt64)}, []Allotment{{4, 0, NoneLeft}, {4, 0, NoneLeft}}},
		"priority first":        {8, list{ask("a", 5), ask("b", 5).first(1)}, []Allotment{{0, 3, NoneLeft}, {0, 5, Satisfied}}},
		"quota beats priority":  {8, list{ask("a", 5).quota(5), ask("b", 5).first(1)}, []Allotment{{5, 0, Satisfied}, {0, 3, NoneLeft}}},
		"quotas shrink":         {6, list{ask("a", 9).quota(8), ask("b", 9).quota(4)}, []Allotment{{4, 0, NoneLeft}, {2, 0, NoneLeft}}},
		"the weak shrink first": {6, list{ask("a", 9).quota(5).tier(guaranteed), ask("b", 9).quota(2), ask("c", 9).quota(2).tier(scavenger)}, []Allotment{{5, 0, NoneLeft}, {1, 0, NoneLeft}, {0, 0, NoneLeft}}},
		// 5 by 1 to 2 is 1 2/3 and 3 1/3; 8 by 3, 3 and 1 is 3 3/7, 3 3/7 and 1 1/7.
		"largest fraction":  {5, list{ask("a", 9).weigh(1), ask("b", 9).weigh(2)}, []Allotment{{0, 2, NoneLeft}, {0, 3, NoneLeft}}},
		"then age":          {8, list{ask("a", 9).weigh(3).born(2), ask("b", 9).weigh(3).born(1), ask("c", 9).born(0)}, []Allotment{{0, 3, NoneLeft}, {0, 4, NoneLeft}, {0, 1, NoneLeft}}},
		"then name":         {8, list{ask("b", 9), ask("a", 9), ask("c", 9)}, []Allotment{{0, 3, NoneLeft}, {0, 3, NoneLeft}, {0, 2, NoneLeft}}},
		"too large to add":  {math.MaxInt64, list{ask("a", math.MaxInt64).quota(math.MaxInt64), ask("b", math.MaxInt64).quota(math.MaxInt64)}, []Allotment{{1 << 62, 0, NoneLeft}, {1<<62 - 1, 0, NoneLeft}}},
		"negative is none":  {-1, list{ask("a", -3).quota(-1)}, []Allotment{{0, 0, Satisfied}}},
		"weights too large": {8, list{ask("a", 9).weigh(math.MaxInt64), ask("b", 9).weigh(math.MaxInt64)}, []Allotment{{0, 4, NoneLeft}, {0, 4, NoneLeft}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, allot(tc.total, tc.entitlements)); d != "" {
				t.Errorf("parts (-want +got):\n%s", d)
			}
		})
	}
}

func drawAmount(t *rapid.T, label string) int64 {
	switch rapid.IntRange(0, 9).Draw(t, "size") {
	case 0:
		return rapid.Int64Range(0, math.MaxInt64).Draw(t, label)
	case 1:
		return 0
	}
	return rapid.Int64Range(0, 40).Draw(t, label)
}

func drawEntitlements(t *rapid.T) []entitlement {
	var out []entitlement
	for i := range rapid.IntRange(0, 7).Draw(t, "claims") {
		c := entitlement{
			Name: string(rune('a' + i)), Tier: rapid.SampledFrom(cluster.Tiers).Draw(t, "tier"), Priority: rapid.Int32Range(0, 2).Draw(t, "priority"),
			Created: rapid.Int64Range(0, 2).Draw(t, "created"), Weight: rapid.Int64Range(0, 9).Draw(t, "weight"),
			Quota: drawAmount(t, "quota"), Request: drawAmount(t, "request"), Limit: -1,
		}
		if rapid.Bool().Draw(t, "limited") {
			c.Limit = drawAmount(t, "limit")
		}
		out = append(out, c)
	}
	return out
}

func TestDivisionIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entitlements, total := drawEntitlements(t), drawAmount(t, "total")
		parts := allot(total, entitlements)
		left, open := total, false
		for i, p := range parts {
			c := &entitlements[i]
			if p.Quota < 0 || p.OverQuota < 0 || p.Quota > c.Quota || p.Share() > c.most() || c.Weight == 0 && p.OverQuota > 0 {
				t.Fatalf("%+v got %+v", *c, p)
			}
			if left -= p.Share(); left < 0 {
				t.Fatalf("more than %d was given: %+v", total, parts)
			}
			open = open || p.Share() < c.most()
			if (p.Stop == NoneLeft) != (p.Share() < c.most()) {
				t.Fatalf("%+v got %+v", *c, p)
			}
		}
		if open && left > 0 {
			t.Fatalf("%d is left, and a queue could take more: %+v", left, parts)
		}
		for i := range entitlements {
			for j := range entitlements {
				a, b := &entitlements[i], &entitlements[j]
				if a.Priority > b.Priority && parts[j].OverQuota > 0 && parts[i].Share() < a.most() {
					t.Fatalf("%s got more than its quota before %s was satisfied: %+v", b.Name, a.Name, parts)
				}
				if a.Tier.Rank() < b.Tier.Rank() && parts[j].Quota > 0 && parts[i].Quota < min(a.Quota, a.most()) {
					t.Fatalf("%s got of its quota before %s had all of its own: %+v", b.Name, a.Name, parts)
				}
			}
		}
	})
}

// The shares of two entitlements that both could take more are in the proportion of their
// weights, up to rounding by one unit.
func TestWeightsCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entitlements := drawEntitlements(t)
		for i := range entitlements {
			entitlements[i].Priority, entitlements[i].Quota = 0, 0
		}
		parts := allot(drawAmount(t, "total"), entitlements)
		for i, p := range parts {
			for j, q := range parts {
				if p.Stop != NoneLeft || q.Stop != NoneLeft {
					continue
				}
				// p ÷ its weight and q ÷ its weight differ by at most one unit.
				if CompareProducts(max(0, p.OverQuota-1), entitlements[j].Weight, q.OverQuota+1, entitlements[i].Weight) > 0 {
					t.Fatalf("weights %d and %d got %d and %d", entitlements[i].Weight, entitlements[j].Weight, p.OverQuota, q.OverQuota)
				}
			}
		}
	})
}

func TestOrderOfClaimsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entitlements, total := drawEntitlements(t), drawAmount(t, "total")
		want := map[string]Allotment{}
		for i, p := range allot(total, entitlements) {
			want[entitlements[i].Name] = p
		}
		mixed := rapid.Permutation(slices.Clone(entitlements)).Draw(t, "mixed")
		got := map[string]Allotment{}
		for i, p := range allot(total, mixed) {
			got[mixed[i].Name] = p
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	})
}
