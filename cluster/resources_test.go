package cluster_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
)

func TestResourcesWith(t *testing.T) {
	r := cluster.Resources{{"cpu", 1}}
	if diff := cmp.Diff(cluster.Resources{{"cpu", 1}, {"memory", 3}}, r.With("memory", 3)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(cluster.Resources{{"cpu", 9}}, r.With("cpu", 9)); diff != "" {
		t.Error(diff)
	}
	if r.Of("cpu") != 1 || r.Of("memory") != 0 {
		t.Errorf("With changed the original: %v", r)
	}
}

func TestMulDivAgreesWithArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// The product of two 31-bit numbers fits int64, so plain arithmetic gives the
		// expected result.
		a, b := rapid.Int64Range(0, math.MaxInt32).Draw(t, "a"), rapid.Int64Range(0, math.MaxInt32).Draw(t, "b")
		c := rapid.Int64Range(1, math.MaxInt64).Draw(t, "c")
		if got, want := cluster.MulDiv(a, b, c), a*b/c; got != want {
			t.Fatalf("%d × %d ÷ %d = %d, want %d", a, b, c, got, want)
		}
		want := a * b / c
		if a*b%c != 0 {
			want++
		}
		if got := cluster.MulDivUp(a, b, c); got != want {
			t.Fatalf("%d × %d ÷ %d rounded up = %d, want %d", a, b, c, got, want)
		}
		// Large factors that cancel must give an exact result.
		big := rapid.Int64Range(1, math.MaxInt64).Draw(t, "big")
		if got := cluster.MulDiv(big, a, max(a, 1)); a > 0 && got != big {
			t.Fatalf("%d × %d ÷ %d = %d", big, a, a, got)
		}
	})
	if got := cluster.MulDiv(math.MaxInt64, math.MaxInt64, 1); got != math.MaxInt64 {
		t.Errorf("a result that overflows is %d", got)
	}
}

func TestAddOverflow(t *testing.T) {
	if _, ok := cluster.AddOverflow(math.MaxInt64, 1); ok {
		t.Error("an overflow was not reported")
	}
	if _, ok := cluster.AddOverflow(math.MinInt64, -1); ok {
		t.Error("an underflow was not reported")
	}
	if sum, ok := cluster.AddOverflow(2, 3); !ok || sum != 5 {
		t.Errorf("2 + 3 = %d, %v", sum, ok)
	}
}
