package command

import (
	"fmt"
	"time"

	"github.com/berth-project/berth/internal/manifest"
	"github.com/spf13/cobra"
)

// clock is the value of the flag --now, the time at which sessions run. The clock
// of the machine is never read, so that equal input gives equal output.
type clock struct{ flag string }

func (t *clock) addFlag(c *cobra.Command) {
	c.Flags().StringVar(&t.flag, "now", "", "the time at which to decide, such as 2026-01-02T15:04:05Z (default: the time of the snapshot or scenario, else the newest time in the input)")
}

// now returns the time in nanoseconds since 1970.
func (t *clock) now(b *manifest.Bundle) (int64, error) {
	if t.flag == "" {
		return b.Now(), nil
	}
	return parseTime("--now", t.flag)
}

// parseTime returns the time that is the value of the flag, in nanoseconds since 1970.
func parseTime(flag, value string) (int64, error) {
	at, err := time.Parse(time.RFC3339, value)
	if err != nil || at.Year() < 1970 || at.Year() > 2200 {
		return 0, fmt.Errorf("%s %s: want a time between 1970 and 2200, such as 2026-01-02T15:04:05Z", flag, value)
	}
	return at.UnixNano(), nil
}
