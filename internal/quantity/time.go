package quantity

import (
	"strings"
	"time"
)

// Time formats a time in nanoseconds since 1970 as RFC 3339, in UTC.
func Time(at int64) string { return time.Unix(0, at).UTC().Format(time.RFC3339) }

// Span formats a duration in nanoseconds as Go does, but without zero minutes and
// seconds at the end: "10m", not "10m0s".
func Span(d int64) string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// ExactTime formats a time in nanoseconds since 1970 as RFC 3339, in UTC, with the fraction of
// the second.
func ExactTime(at int64) string { return time.Unix(0, at).UTC().Format(time.RFC3339Nano) }
