package english_test

import (
	"testing"

	"github.com/berth-project/berth/internal/english"
)

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 nodes", 1: "1 node", 2: "2 nodes", -1: "-1 nodes", 1000: "1000 nodes"} {
		if got := english.Count(n, "node"); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 131072: "131,072", 1234567: "1,234,567"} {
		if got := english.Thousands(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
