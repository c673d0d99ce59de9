package phrase_test

import (
	"strings"
	"testing"

	"github.com/berth-project/berth/internal/phrase"
)

func TestQuoteAndClip(t *testing.T) {
	long := strings.Repeat("x", 61)
	tests := map[string]struct{ quoted, clipped string }{
		"":       {`""`, ""},
		"a b":    {`"a b"`, "a b"},
		"\x1b[m": {`"\x1b[m"`, `\x1b[m`},
		long:     {`"` + long[:60] + `"…`, long[:60] + "…"},
	}
	for s, want := range tests {
		if got := phrase.Quote(s); got != want.quoted {
			t.Errorf("Quote(%q) = %s, want %s", s, got, want.quoted)
		}
		if got := phrase.Clip(s); got != want.clipped {
			t.Errorf("Clip(%q) = %s, want %s", s, got, want.clipped)
		}
	}
}

func TestEither(t *testing.T) {
	for want, list := range map[string][]int{"": nil, "16": {16}, "16 or 8": {16, 8}, "16, 8 or 4": {16, 8, 4}} {
		if got := phrase.Either(list); got != want {
			t.Errorf("Either(%v) = %q, want %q", list, got, want)
		}
	}
}

func TestSuggestion(t *testing.T) {
	if got := phrase.Suggestion("trian", []string{"serve", "train"}); got != `; did you mean "train"?` {
		t.Errorf("%q", got)
	}
	if got := phrase.Suggestion("x", []string{"serve", "train"}); got != "" {
		t.Errorf("%q", got)
	}
}
