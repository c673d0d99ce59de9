package estimate_test

import (
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
)

// Of 62 layers, 10 keep all tokens. They are allocated in groups of 10, so the 52 layers with a
// window take as much as 60. The tokens of a step are kept in addition to the window, but not
// more than the context has.
func TestGroups(t *testing.T) {
	m := eight()
	m.Architecture.Layers, m.Architecture.KVHeads = 62, 16
	windows := make([]int, 62)
	for i := range windows {
		if (i+1)%6 != 0 {
			windows[i] = 1024
		}
	}
	m.Architecture.Caches = m.Architecture.WithWindows(windows)
	const token = 2 * 16 * 128 * 2
	for name, tt := range map[string]struct {
		serving estimate.Serving
		want    cluster.Bytes
	}{
		"the whole context is within a step": {estimate.Serving{Context: 8192, WindowSteps: 1, BatchTokens: 8192, Groups: 125}, token * (70*8192 + 60)},
		"a window and a step":                {estimate.Serving{Context: 32768, WindowSteps: 1, BatchTokens: 2048, Groups: 125}, token * (10*32768 + 60*(1023+2048+1))},
		"pages of 16":                        {estimate.Serving{Context: 8192, WindowSteps: 1, BatchTokens: 8192, Groups: 125, Page: 16}, token * (70*8192 + 60*16)},
		"not in groups":                      {estimate.Serving{Context: 32768}, token * (10*32768 + 52*1024)},
	} {
		if got := device(t, m, tt.serving).KVCache; got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

// A state is rounded up to pages of tokens, and tokens are counted in pages of that size.
func TestStatesInGroups(t *testing.T) {
	m := eight()
	m.Architecture.Layers = 4
	full := m.Architecture.WithWindows([]int{0})
	m.Architecture.Caches = []estimate.Cache{{Layer: 0, State: 100_000}, {Layer: 1, State: 100_000}, {Layer: 2, State: 100_000}, full[0]}
	m.Architecture.Caches[3].Layer = 3
	// A token takes 4,096 bytes, and a page of 16 tokens 65,536: a state takes two pages, and 1,000
	// tokens take 32 pages of 32.
	const page = 2 * 16 * 4096
	if got := device(t, m, estimate.Serving{Context: 1000, Groups: 150, Page: 16}).KVCache; got != 3*page+32*page {
		t.Errorf("%d, want %d", got, 35*page)
	}
	if got := device(t, m, estimate.Serving{Context: 1000, Groups: 150, Page: 16, States: 2}).KVCache; got != 3*4*65536+16*4*65536 {
		t.Errorf("two states: %d, want %d", got, 19*4*65536)
	}
	m.Architecture.Caches[0].State = 1 << 62
	if _, err := m.PerDevice(estimate.Serving{Context: 1000, Groups: 150, Page: 16}); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a huge state: %v", err)
	}
}
