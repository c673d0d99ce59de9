package command

import (
	"fmt"
	"time"

	"github.com/berth-project/berth/internal/manifest"
	"github.com/spf13/cobra"
)

// clock is the flag that says when now is. The machine's own clock is never
// read: equal input gives equal output.
type clock struct{ now string }

func (t *clock) flag(c *cobra.Command) {
	c.Flags().StringVar(&t.now, "now", "", "the time to decide at, such as 2026-01-02T15:04:05Z (default: the newest time in the input)")
}

// read is that time in nanoseconds.
func (t *clock) read(b *manifest.Bundle) (int64, error) {
	if t.now == "" {
		return b.Now(), nil
	}
	at, err := time.Parse(time.RFC3339, t.now)
	if err != nil || at.Year() < 1970 || at.Year() > 2200 {
		return 0, fmt.Errorf("--now %s: want a time between 1970 and 2200, such as 2026-01-02T15:04:05Z", t.now)
	}
	return at.UnixNano(), nil
}
