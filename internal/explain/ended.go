package explain

import (
	"fmt"
	"io"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/quantity"
)

// endedText writes which tasks have ended, and whether they count for the minimum.
func (r *Report) endedText(w io.Writer) {
	const most = 4
	for _, s := range [...]struct {
		state cluster.Status
		text  string
	}{
		{cluster.Succeeded, "succeeded: %s. Succeeded tasks need no room and count for the minimum."},
		{cluster.Failed, "failed: %s. Failed tasks are not placed again and do not count for the minimum."},
	} {
		var tasks []string
		for _, e := range r.Ended {
			if e.State == s.state.String() {
				tasks = append(tasks, e.Task)
			}
		}
		if n := len(tasks); n > 0 {
			wrapped(w, fmt.Sprintf("%d of %s "+s.text, n, english.Count(r.Notes.Tasks, "task"), List(tasks, most)), "", "  ")
		}
	}
}

// belowMinimumText returns a sentence that says since when the job has run below its minimum. It
// returns "" if the job does not, or if the simulation itself recorded this, at the time now.
func belowMinimumText(j *cluster.Job, now int64) string {
	if j.BelowMinimumSince == 0 || j.BelowMinimumSince >= now || !j.Running() || j.HasMinimum() {
		return ""
	}
	text := fmt.Sprintf("It has run below its minimum since %s", quantity.Time(j.BelowMinimumSince))
	switch g := j.StaleGrace; {
	case g == nil:
	case *g < 0:
		text += "; its stale grace lets it run without a limit of time"
	default:
		text += fmt.Sprintf("; its stale grace of %s lets it run until %s", quantity.Span(*g), quantity.Time(j.BelowMinimumSince+*g))
	}
	return text + "."
}
