package explain

import (
	"strings"
	"unicode"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/quantity"
)

// Phrases are the texts for the reasons of an engine and its plugins. A reason without a
// phrase is written as the words of its name: GPUMemoryInUse becomes "GPU memory in use".
type Phrases map[engine.Reason]engine.ReasonDoc

// PhrasesOf returns the phrases of the engine. If two plugins document one reason, the phrase of
// the first is used.
func PhrasesOf(e *engine.Engine) Phrases {
	out := Phrases{}
	for _, d := range e.Reasons() {
		if _, twice := out[d.Reason]; !twice {
			out[d.Reason] = d
		}
	}
	return out
}

// rejectionText returns what a rejection means. Misses, which may be nil, are all nodes that
// were rejected for the same reason; their subjects are then named.
func (ph Phrases) rejectionText(r *engine.Rejection, misses []*engine.Miss) string {
	subject, doc := r.Subject, ph[r.Reason]
	text := doc.Phrase
	if doc.About != "" && subject != "" {
		text = doc.About
	} else if s := subjects(misses); s != "" {
		subject = s
	}
	want, have := amounts(r)
	if doc.One != "" && want == "1" {
		text = doc.One
	}
	if text != "" {
		return strings.NewReplacer("{subject}", subject, "{want}", want, "{have}", have).Replace(text)
	}
	text = splitWords(string(r.Reason))
	if subject != "" {
		text += " " + subject
	}
	if want != "" {
		text += ", want " + want
		if have != "" && misses == nil {
			text += ", have " + have // with misses, exampleText has this
		}
	}
	return text
}

// amounts returns what was requested and what is available, in bytes if these are known.
func amounts(r *engine.Rejection) (want, have string) {
	if r.WantBytes > 0 {
		return quantity.MemoryPair(cluster.Bytes(r.WantBytes), cluster.Bytes(r.HaveBytes))
	}
	return quantity.Pair(r.Want, r.Have)
}

// aboutHasAmount reports whether the text of the rejection says what the node has of its
// subject.
func (ph Phrases) aboutHasAmount(r *engine.Rejection) bool {
	return r.Subject != "" && strings.Contains(ph[r.Reason].About, "{have}")
}

// exampleText returns the nearest miss and what it has, in parentheses. It returns "" if the
// phrase says that already, or is not about an amount.
func (ph Phrases) exampleText(misses []*engine.Miss) string {
	if len(misses) == 0 {
		return ""
	}
	best := misses[0]
	_, have := amounts(&best.Rejection)
	phrase := ph[best.Rejection.Reason].Phrase
	if ph.aboutHasAmount(&best.Rejection) {
		return "(" + best.Node + ")"
	}
	if have == "" || phrase != "" && (strings.Contains(phrase, "{have}") || !strings.Contains(phrase, "{want}")) {
		return ""
	}
	if len(misses) == 1 {
		return "(" + best.Node + " has " + have + ")"
	}
	return "(best: " + best.Node + " has " + have + ")"
}

// splitWords turns GPUMemoryInUse into "GPU memory in use".
func splitWords(name string) string {
	var out strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		upper := unicode.IsUpper(r)
		// A word begins at a capital letter that follows or precedes a small letter.
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
