package explain

import (
	"fmt"
	"io"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/numeral"
)

// GroupChoice is how the group was chosen for a workload that takes whole nodes.
type GroupChoice struct {
	Group  Group              `json:"group"`
	Score  float64            `json:"score"`
	Scores map[string]float64 `json:"scores"`
	// RunnerUp is the next best group. There is none where the rest of the workload
	// or of its set is on the group already.
	RunnerUp *GroupCandidate `json:"runnerUp,omitempty"`
	Others   int             `json:"others,omitempty"` // groups that would have done as well

	title, next string // of the group and of the runner-up
}

func groupChoice(d *engine.Decision) *GroupChoice {
	out := &GroupChoice{
		Group: group(d.Group), Score: d.GroupScore.Mean(), Scores: parts(d.GroupScore),
		Others: max(0, len(d.Groups)-1), title: GroupTitle(d.Group),
	}
	if out.Others > 0 {
		next := groupCandidate(d.Groups[1])
		out.RunnerUp, out.next = &next, GroupTitle(d.Groups[1].Group)
	}
	return out
}

func (c *GroupChoice) text(w io.Writer) {
	wrapped(w, fmt.Sprintf("Group %s, score %s: %s", c.title, decimal(c.Score, 1), Scores(c.Scores)), "  ", "    ")
	if next := c.RunnerUp; next != nil {
		wrapped(w, fmt.Sprintf("runner-up of %s: %s, with %s, %s", numeral.Count(c.Others, "other group"), c.next, decimal(next.Score, 1),
			against(next.Scores, c.Scores, "the first by product, memory and count wins")), "    ", "      ")
	}
}

// GroupTitle is "A100 × 4, 40 GiB each": groups may differ in memory alone.
func GroupTitle(k cluster.Key) string {
	title := k.String()
	if k.Memory > 0 {
		title += ", " + Memory(cluster.Bytes(k.Memory)<<20) + " each"
	}
	return title
}
