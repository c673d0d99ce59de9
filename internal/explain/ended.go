package explain

import (
	"fmt"
	"io"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/numeral"
)

// endedText says which tasks have ended, and what that means for the minimum.
func (r *Report) endedText(w io.Writer) {
	const most = 4
	for _, s := range [...]struct {
		state cluster.Status
		text  string
	}{
		{cluster.Succeeded, "succeeded: %s. What succeeded needs no room and counts for the minimum."},
		{cluster.Failed, "failed: %s. What failed is not placed again and counts for nothing."},
	} {
		var tasks []string
		for _, e := range r.Ended {
			if e.State == s.state.String() {
				tasks = append(tasks, e.Task)
			}
		}
		if n := len(tasks); n > 0 {
			wrapped(w, fmt.Sprintf("%d of %s "+s.text, n, numeral.Count(r.total, "task"), List(tasks, most)), "", "  ")
		}
	}
}

// tornText says since when the job has run below its minimum, "" where it does not
// or was not known to before now.
func tornText(j *cluster.Job, now int64) string {
	if j.Torn == 0 || j.Torn >= now || !j.Running() || j.Stands() {
		return ""
	}
	text := fmt.Sprintf("It has run below its minimum since %s", stamp(j.Torn))
	switch g := j.StaleGrace; {
	case g == nil:
	case *g < 0:
		text += "; by its stale grace it is left alone for good"
	default:
		text += fmt.Sprintf("; by its stale grace of %s it is left alone until %s", spanText(*g), stamp(j.Torn+*g))
	}
	return text + "."
}
