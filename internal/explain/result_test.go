package explain

import (
	"testing"

	"github.com/berth-project/berth/internal/wire"
)

func TestCauseText(t *testing.T) {
	for want, d := range map[string]wire.Decision{
		"":                                 {Action: "Bind", Node: "a"},
		"job/b (Reclaimed)":                {Action: "Evict", For: "job/b", Reason: "Reclaimed"},
		"job/b (Consolidated), moves to c": {Action: "Evict", For: "job/b", Reason: "Consolidated", Landing: "c"},
		"(GangBelowMinimum)":               {Action: "Evict", Reason: "GangBelowMinimum"},
	} {
		if got := Cause(&d); got != want {
			t.Errorf("have %q, want %q", got, want)
		}
	}
}
