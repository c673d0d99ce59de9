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
  d              AB█ ·   ·   x    2 free
H100 × 8, 80 GiB each
  a              C█  C█  [D] [D] ·   ·   ·   ·    4 free
  b … × 2 nodes  ·   ·   ·   ·   ·   ·   ·   ·    8 free
without devices
  e              0 of 96 cores held

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
	if !strings.Contains(got, "H100 × 8, 80 GiB each\n  100 nodes; free: 664 of 800 devices\n  8 free  66 nodes") {
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

// TestColorsOfQueues checks that cells have the color of the queue of their workload.
func TestColorsOfQueues(t *testing.T) {
	s := enginetest.State(h100("a"), enginetest.Queue("prod"), enginetest.Queue("dev"),
		enginetest.Job("x").Devices(1).Queue("prod").On("a"), enginetest.Job("y").Devices(1).Queue("dev").On("a"))
	got := draw(s, Style{Color: true})
	for _, want := range []string{"\x1b[36mA█  \x1b[0m", "\x1b[32mB█  \x1b[0m", "colors of queues: \x1b[32mdev\x1b[0m  \x1b[36mprod\x1b[0m\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
}

func TestLetters(t *testing.T) {
	for n, want := range map[int]string{0: "A", 25: "Z", 26: "a", 51: "z", 52: "AA", 53: "AB", 78: "BA", 727: "ZZ", 728: "AAA"} {
		if got := letter(n); got != want {
			t.Errorf("the letter of %d is %s, want %s", n, got, want)
		}
	}
}
