package strict

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBlocks checks which documents are rewritten as JSON. Package strict must not make trees of
// what kubectl prints.
func TestBlocks(t *testing.T) {
	tests := map[string]struct {
		text string
		want string // "" if the document is read as a tree
	}{
		"object":            {"a: b\nc:\n  d: 1\n  e: -1.5\n", `{"a":"b","c":{"d":1,"e":-1.5}}`},
		"list":              {"a:\n- b\n- c: d\n  e: f\n-\n- - g\n", `{"a":["b",{"c":"d","e":"f"},null,["g"]]}`},
		"indented list":     {"a:\n  - b\n  -   c: d\n      e: f\nx: y\n", `{"a":["b",{"c":"d","e":"f"}],"x":"y"}`},
		"words":             {"a: null\nb: ~\nc:\nd: true\ne: False\nf: yes\ng: on\nh: nullx\n", `{"a":null,"b":null,"c":null,"d":true,"e":false,"f":"yes","g":"on","h":"nullx"}`},
		"quantities":        {"a: 80Gi\nb: 500m\nc: 10.0.0.1\nd: 1h30m\ne: 2026-01-02T15:04:05Z\nf: 0.5\ng: '8'\n", `{"a":"80Gi","b":"500m","c":"10.0.0.1","d":"1h30m","e":"2026-01-02T15:04:05Z","f":0.5,"g":"8"}`},
		"quotes":            {`a: "b \" \\ \n é \u00e9 \x41 \e"` + "\nb: 'it''s \"c\" \\'\n\"c\": d\n'e': f\n", `{"a":"b \" \\ \n é \u00e9 \u0041 \u001b","b":"it's \"c\" \\","c":"d","e":"f"}`},
		"folded":            {"a: b\n  c\n\n  d\nb: 'e\n\n\n  f  \n  g'\nc: \"h\n  i\\\n  j \\\n  \\ k\"\n", `{"a":"b c\nd","b":"e\n\nf g","c":"h ij  k"}`},
		"literal":           {"a: |\n  b\n   \tc \"\n\n  d\n\nb: |-\n    e\n\nc: |+\n  f\n\nd: |2-\n   g\n", `{"a":"b\n \tc \"\n\nd\n","b":"e","c":"f\n\n","d":" g"}`},
		"comments":          {"# a\na: b # c\n#d\nc: # d\n  # e\n  - f # g\n    # h\n#i\n", `{"a":"b","c":["f"]}`},
		"in one line":       {"a: {b: [1, 2.5, 'c', {d: null}], e: {}, f: []}\nb: [ {c: d e} ]\nc: {}\n", `{"a":{"b":[1,2.5,"c",{"d":null}],"e":{},"f":[]},"b":[{"c":"d e"}],"c":{}}`},
		"in one line only":  {"---\n{a: b, \"c\":{'d':[1]}} # e\n", `{"a":"b","c":{"d":[1]}}`},
		"colons and hashes": {"a: b:c#d\nhttp://x: y\ng: -x\n", `{"a":"b:c#d","http://x":"y","g":"-x"}`},
		"Windows":           {"a: |\r\n  b\r\nc: d\r\n", `{"a":"b\n","c":"d"}`},
		"no last break":     {"a: b", `{"a":"b"}`},
		"empty":             {"---\n# nothing\n", ""},
		"anchor":            {"a: &b c\nd: *b\n", ""},
		"tag":               {"a: !!str 5\n", ""},
		"folded block":      {"a: >\n  b\n", ""},
		"other numbers":     {"a: 0x1F\n", ""},
		"octal":             {"a: 0o17\n", ""},
		"leading zero":      {"a: 017\n", ""},
		"underscores":       {"a: 1_000\n", ""},
		"infinite":          {"a: .inf\n", ""},
		"exponent":          {"a: 1e3\n", ""},
		"merge":             {"<<: {a: b}\n", ""},
		"complex key":       {"? a\n: b\n", ""},
		"several lines":     {"a: {b: c,\n  d: e}\n", ""},
		"tab":               {"a:\tb\n", ""},
		"no object":         {"- a\n", ""},
		"a mistake":         {"a: b: c\n", ""},
		"indentation":       {"a:\n   b: c\n  d: e\n", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			Blocks([]byte(test.text), func(o *JSON) { got = string(o.text) })
			if got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
			compareBlocks(t, []byte(test.text))
		})
	}
}

// TestBlocksAmongTrees checks that a document that is read as a tree does not stop that others are
// rewritten, unless it may have an anchor.
func TestBlocksAmongTrees(t *testing.T) {
	for text, want := range map[string]int{
		"a: b\n---\na: 0x1\n---\na: d && e\n": 2,
		"a: b\n---\na: &b 0x1\n---\na: *b\n":  0,
		"a: b\n...\n---\na: c\n":              0,
		"--- a\n---\nb: c\n--- # x\n\n---":    1,
	} {
		if got := compareBlocks(t, []byte(text)); got != want {
			t.Errorf("%q: %d documents are rewritten, want %d", text, got, want)
		}
	}
}

// writer writes random YAML.
type writer struct {
	*rand.Rand
	strings.Builder
}

func (w *writer) pick(from ...string) string { return from[w.IntN(len(from))] }

// end writes the end of a line, and perhaps comments.
func (w *writer) end() {
	w.WriteString(w.pick("\n", "\n", "\n", "\n", " # c\n", " \n", "\n\n", "\n# c\n", "\n      # c\n"))
}

func (w *writer) scalar(indent int) {
	pad := strings.Repeat(" ", indent+w.IntN(3))
	text := w.pick("a", "b c", "true", "null", "~", "1", "-2", "0.5", "x:y", "a#b", "é", "2026-01-02", "80Gi", "-x", "<<", "0x1F", "1e5", "no", "[]", "{}", "{a: b}", "[1, a b, {c: 'd'}]", `{"a":1, 'b':{}}`, "é: x")
	switch w.IntN(10) {
	case 0:
		w.WriteString("'" + text + "'' \"" + w.pick("", "\n", "\n\n"+pad, " \n"+pad) + text + "'")
	case 1:
		w.WriteString("\"" + text + `\n\u00e9\" '` + w.pick("", "\n", "\n\n"+pad, " \n"+pad, "\\\n"+pad, " \\\n"+pad+"\\ ") + text + "\"")
	case 2:
		w.WriteString("|" + w.pick("", "-", "+", "2") + w.pick("\n", " # c\n"))
		for range 1 + w.IntN(3) {
			w.WriteString(pad + w.pick("", "", " ", "#") + text + w.pick("\n", "\n", "\n\n", "\n"+pad+"\n"))
		}
		return
	case 3:
		w.WriteString(text + w.pick("\n", "\n\n") + pad + text)
	default:
		w.WriteString(text)
	}
	w.end()
}

// value writes a value that follows "key:" or "-" at the indentation.
func (w *writer) value(indent, depth int, entry bool) {
	kind := w.IntN(4)
	if depth > 3 {
		kind = 3
	}
	switch kind {
	case 0: // an object
		inner := indent + 1 + w.IntN(3)
		compact := entry && w.IntN(2) > 0
		if compact {
			w.WriteString(strings.Repeat(" ", inner-indent-1))
		} else {
			w.end()
		}
		for i := range 1 + w.IntN(3) {
			if i > 0 || !compact {
				w.WriteString(strings.Repeat(" ", inner))
			}
			w.WriteString(w.pick("a", "b", "items", `"c"`, "'d'", "e f", "1", "http://x") + ":")
			w.value(inner, depth+1, false)
		}
	case 1: // a list
		inner := indent + w.IntN(3)
		if entry {
			inner++
		}
		w.end()
		for range 1 + w.IntN(3) {
			w.WriteString(strings.Repeat(" ", inner) + "-")
			w.value(inner, depth+1, true)
		}
	case 2:
		w.end() // null
	default:
		w.WriteString(w.pick(" ", " ", "  ", " ", "\n  "+strings.Repeat(" ", indent)))
		w.scalar(indent + 1)
	}
}

// TestBlocksLikeLibrary compares random documents, with and without mistakes.
func TestBlocksLikeLibrary(t *testing.T) {
	const files = 20_000
	rewritten := 0
	for seed := range uint64(files) {
		w := writer{Rand: rand.New(rand.NewPCG(seed, 0))}
		for range 1 + w.IntN(2) {
			w.WriteString(w.pick("", "# c\n", "---\n", "--- # c\n"))
			for _, key := range []string{"apiVersion", "items", "spec"}[:1+w.IntN(3)] {
				w.WriteString(key + ":")
				w.value(0, 0, false)
			}
		}
		data := []byte(w.String())
		for range w.IntN(3) {
			data[w.IntN(len(data))] = w.pick(" ", "\n", ":", "-", "#", "a", "'", `"`, "|", ",", "\t", "&", "]", "0")[0]
		}
		rewritten += compareBlocks(t, data)
	}
	if rewritten < files/5 {
		t.Errorf("only %d documents were rewritten", rewritten)
	}
}

// FuzzBlocks compares any text.
func FuzzBlocks(f *testing.F) {
	names, err := filepath.Glob("../../scenarios/*/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for i, name := range names {
		if i%10 != 0 {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for seed := range uint64(50) {
		w := writer{Rand: rand.New(rand.NewPCG(seed, 1))}
		w.WriteString("items:")
		w.value(0, 0, false)
		f.Add([]byte(w.String()))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 1<<14 {
			compareBlocks(t, data)
		}
	})
}
