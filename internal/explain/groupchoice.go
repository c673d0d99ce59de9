package explain

import (
	"fmt"
	"io"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/quantity"
)

func (r *Report) groupText(w io.Writer) {
	c := r.Report.Group
	wrapped(w, fmt.Sprintf("Group %s, score %s: %s", r.Notes.Group, quantity.Decimal(c.Score, 1), ScoresText(c.Scores)), "  ", "    ")
	if next := c.RunnerUp; next != nil {
		wrapped(w, fmt.Sprintf("runner-up of %s: %s, with %s, %s", english.Count(c.Others, "other group"), r.Notes.RunnerUp, quantity.Decimal(next.Score, 1),
			scoreDifferences(next.Scores, c.Scores, "the first by product, memory and count wins")), "    ", "      ")
	}
}

// GroupTitle returns "A100 × 4, 40 GiB each". It names the memory because groups may differ in
// nothing else. Devices without a product are named by their resource.
func GroupTitle(k cluster.GroupKey) string {
	title := GroupName(k)
	if k.Memory > 0 {
		title += ", " + quantity.Memory(cluster.Bytes(k.Memory)<<20) + " each"
	}
	return title
}
