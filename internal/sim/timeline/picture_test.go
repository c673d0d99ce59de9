package timeline_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/sim/timeline"
	"github.com/google/go-cmp/cmp"
)

func picture(c *timeline.Timeline, style explain.Style, wide bool) string {
	var out bytes.Buffer
	c.Picture(&out, style, wide)
	return out.String()
}

// TestPicture draws 82 cycles. The output is wide enough for 24 columns, so that a
// column is 4 cycles. low is evicted in cycle 32, which is the last one of the eighth
// column. high runs in cycle 33 and ends in cycle 34, in which low starts again and
// then runs for 40 cycles.
func TestPicture(t *testing.T) {
	c := run(t, newEngine(t, pusher{}), timeline.Options{Cycles: 90},
		enginetest.Job("low").Devices(2).Preemptible().RunFor(40*minute),
		enginetest.Job("high").Priority(1).Devices(2).Created(31*minute).RunFor(minute),
		enginetest.Job("half").Created(80*minute).Share(1, 500))
	want := `1970-01-01 00:00:00 UTC, 82 cycles of 1m; settled after cycle 81, at 01:20

                00:00     00:40     01:20
  job/low       ███████~██████████✓
  job/high             ○✓
  job/half                          █

  ○ reserved   █ running   ~ evicted   ✓ ended   a column is 4 cycles

  queues: devices used of the fair share (▁ to █, + is more); at the end
  default       ██████████████████··█  0.5/0.5
`
	if diff := cmp.Diff(want, picture(c, explain.Style{Width: 49}, false)); diff != "" {
		t.Error(diff)
	}
	if got := picture(c, explain.Style{Width: 49, Color: true}, false); !strings.Contains(got, "\x1b[31m~\x1b[0m") {
		t.Errorf("no colors in\n%s", got)
	}
}

// TestPictureFitsWidth checks the width of the picture for many numbers of cycles.
func TestPictureFitsWidth(t *testing.T) {
	for cycles := 1; cycles < 400; cycles += 7 {
		c := run(t, newEngine(t), timeline.Options{Cycles: cycles}, enginetest.Job("a-name-of-some-length-that-is-too-long").Devices(2).RunFor(int64(cycles)*minute))
		for _, width := range []int{60, 80, 133} {
			for _, line := range strings.Split(picture(c, explain.Style{Width: width}, false), "\n") {
				if n := utf8.RuneCountInString(line); n > max(width, 72) {
					t.Fatalf("%d cycles in %d columns: %d of them in %q", cycles, width, n, line)
				}
			}
		}
	}
}

func TestPictureCountsHiddenRows(t *testing.T) {
	var parts []enginetest.Part
	for i := range 45 {
		parts = append(parts, enginetest.Job(fmt.Sprintf("j%02d", i)).Share(1, 10))
	}
	c := run(t, newEngine(t), timeline.Options{Cycles: 3}, parts...)
	if got := picture(c, explain.Style{}, false); !strings.Contains(got, "  … and 5 more workloads; -o wide shows all\n") || strings.Contains(got, "j40") {
		t.Error(got)
	}
	if got := picture(c, explain.Style{}, true); strings.Contains(got, "more") || !strings.Contains(got, "job/j44") {
		t.Error(got)
	}
	var story bytes.Buffer
	c.Story(&story, explain.Style{}, false)
	if !strings.Contains(story.String(), "… and 5 more events; -o wide shows all\n") {
		t.Error(story.String())
	}
}

// TestCoresWithoutDevices checks that the use of cores is shown if no node has devices.
func TestCoresWithoutDevices(t *testing.T) {
	s := enginetest.State(enginetest.Node("a").CPU(8, "64Gi"), enginetest.Job("j").CPU(6000, "1Gi"))
	c, err := timeline.Run(newEngine(t), s, timeline.Options{Cycles: 9, Every: minute})
	if err != nil {
		t.Fatal(err)
	}
	if got := picture(c, explain.Style{}, false); !strings.Contains(got, "queues: cores used of the fair share\n  default       6/6     6/6\n") {
		t.Error(got)
	}
}
