package explain

import (
	"strings"
	"unicode"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/quantity"
)

// Phrases are how the reasons of an engine and its plugins are told. A reason that
// is not there, or has no phrase, is spelled out of its own name: reasons are named
// so that this reads well.
type Phrases map[engine.Reason]engine.ReasonDoc

// PhrasesOf are those of the engine. Where two plugins document one reason, the first counts.
func PhrasesOf(e *engine.Engine) Phrases {
	out := Phrases{}
	for _, d := range e.Reasons() {
		if _, twice := out[d.Reason]; !twice {
			out[d.Reason] = d
		}
	}
	return out
}

// words says what a rejection means; misses, where given, are all those like it.
func (ph Phrases) words(r *engine.Rejection, misses []*engine.Miss) string {
	subject, doc := r.Subject, ph[r.Reason]
	text := doc.Phrase
	if doc.About != "" && subject != "" {
		text = doc.About
	} else if s := subjects(misses); s != "" {
		subject = s
	}
	want, have := quantity.Pair(r.Want, r.Have)
	if doc.One != "" && want == "1" {
		text = doc.One
	}
	if text != "" {
		return strings.NewReplacer("{subject}", subject, "{want}", want, "{have}", have).Replace(text)
	}
	text = spell(string(r.Reason))
	if subject != "" {
		text += " " + subject
	}
	if want != "" {
		text += ", want " + want
		if have != "" && misses == nil {
			text += ", have " + have // otherwise the example says it
		}
	}
	return text
}

// example names the nearest miss and what it has, where the phrase does not say it.
func (ph Phrases) example(misses []*engine.Miss) string {
	if len(misses) == 0 {
		return ""
	}
	best := misses[0]
	_, have := quantity.Pair(best.Rejection.Want, best.Rejection.Have)
	phrase := ph[best.Rejection.Reason].Phrase
	if have == "" || phrase != "" && (strings.Contains(phrase, "{have}") || !strings.Contains(phrase, "{want}")) {
		return ""
	}
	if len(misses) == 1 {
		return "(" + best.Node + " has " + have + ")"
	}
	return "(best: " + best.Node + " has " + have + ")"
}

// spell turns GPUMemoryInUse into "GPU memory in use".
func spell(name string) string {
	var out strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		upper := unicode.IsUpper(r)
		// A word begins at a capital after a small letter, and at the last capital of a run that a small letter follows.
		starts := i > 0 && upper && (!unicode.IsUpper(runes[i-1]) || (i+1 < len(runes) && unicode.IsLower(runes[i+1])))
		if starts {
			out.WriteByte(' ')
		}
		acronym := i+1 < len(runes) && unicode.IsUpper(runes[i+1]) || i > 0 && unicode.IsUpper(runes[i-1]) && !starts
		if upper && !acronym {
			r = unicode.ToLower(r)
		}
		out.WriteRune(r)
	}
	return out.String()
}
