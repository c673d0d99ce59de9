package explain

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
	"github.com/google/go-cmp/cmp"
)

func draw(s *cluster.State, style Style) string {
	var b strings.Builder
	Picture(&b, s, style)
	return b.String()
}

func TestPicture(t *testing.T) {
	got := draw(enginetest.State(
		h100("a"), h100("b"), h100("c"),
		enginetest.Node("d").CPU(96, "512Gi").GPUs(4, "A100", "40Gi").With(func(n *cluster.Node) { n.Devices[3].Lost = true }),
		enginetest.Node("e").CPU(96, "512Gi"),
		enginetest.Job("eval").Devices(2).On("a"),
		enginetest.Job("ex").Devices(2).Isolate(cluster.Isolation{GPU: cluster.GPUDeviceExclusive}).On("a"),
		enginetest.Job("frac").Gang(2).DeviceMemory(1, "15Gi").On("d", "d"),
		enginetest.Job("half").Share(1, 250).CPU(500, "1Gi").On("d"),
	), Style{})
	want := `
A100 × 3, 40 GiB each
  d             AB█ ·   ·   x    2 free
H100 × 8, 80 GiB each
  a                           C█  C█  [D] [D] ·   ·   ·   ·    4 free
  b … × 2 nodes               ·   ·   ·   ·   ·   ·   ·   ·    8 free
without devices
  e             0 of 96 cores held

  · free   A█ whole   A▄ part   [A] exclusive   x lost
  A job/frac  B job/half  C job/eval  D job/ex
`
	if d := cmp.Diff(want[1:], got); d != "" {
		t.Error(d)
	}
}

func TestPictureOfManyNodesFitsTheScreen(t *testing.T) {
	var parts []enginetest.Part
	for i := range 200 {
		name := fmt.Sprintf("gpu-node-with-a-rather-long-name-%03d.example.com", i)
		parts = append(parts, enginetest.Node(name).CPU(96, "1Ti").GPUs(8+8*(i%2), "H100", "80Gi"))
		if i%3 == 0 {
			parts = append(parts, enginetest.Job(fmt.Sprintf("j%d", i)).Devices(1+i%8).On(name))
		}
	}
	got := draw(enginetest.State(parts...), Style{})
	lines := strings.Split(got, "\n")
	if len(lines) > 60 {
		t.Errorf("%d lines", len(lines))
	}
	for _, l := range lines {
		if utf8.RuneCountInString(l) > 80 {
			t.Errorf("%d columns: %s", utf8.RuneCountInString(l), l)
		}
	}
	if !strings.Contains(got, "too many for letters") {
		t.Error(got)
	}
}

func TestColorsOnlyIfRequested(t *testing.T) {
	s := enginetest.State(h100("a"))
	if plain := draw(s, Style{}); strings.Contains(plain, "\x1b") {
		t.Errorf("%q", plain)
	}
	if colored := draw(s, Style{Color: true}); !strings.Contains(colored, "\x1b[2m·") {
		t.Errorf("%q", colored)
	}
}
