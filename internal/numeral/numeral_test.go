package numeral_test

import (
	"testing"

	"github.com/berth-project/berth/internal/numeral"
)

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 nodes", 1: "1 node", 2: "2 nodes", -1: "-1 nodes", 1000: "1000 nodes"} {
		if got := numeral.Count(n, "node"); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 131072: "131,072", 1234567: "1,234,567"} {
		if got := numeral.Thousands(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
