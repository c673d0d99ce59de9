package berth_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const guide = "docs/plugins.md"

// block matches code in a page, with the comment above it that names its source:
// "file: PATH" for a whole file, "part of: PATH" for consecutive lines of a file.
var block = regexp.MustCompile("(?m)^(?:<!-- (file|part of): (.*) -->\n)?```(go|yaml)\n((?s).*?\n)```$")

// TestGuideShowsCodeThatRuns checks that all code in the guide is equal to the files,
// which are compiled and tested.
func TestGuideShowsCodeThatRuns(t *testing.T) {
	page := read(t, guide)
	whole := map[string]bool{}
	for _, m := range block.FindAllStringSubmatch(page, -1) {
		kind, path, shown := m[1], m[2], m[4]
		if kind == "" {
			t.Errorf("%s shows code without naming its file:\n%s", guide, shown)
			continue
		}
		code := read(t, path)
		switch {
		case kind == "file" && shown != code:
			t.Errorf("%s shows an outdated version of %s; copy the file into the page", guide, path)
		case kind == "part of" && !strings.Contains("\n"+code, "\n"+shown):
			t.Errorf("%s shows lines that are not in %s; copy them into the page again:\n%s", guide, path, shown)
		}
		whole[path] = whole[path] || kind == "file"
	}
	// The page must show every file of the tutorial.
	for _, pattern := range []string{"*.go", "*/*.go", "scenarios/*.yaml"} {
		files, err := filepath.Glob("examples/tutorial/" + pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no %s in the tutorial: %v", pattern, err)
		}
		for _, f := range files {
			if f = filepath.ToSlash(f); !strings.HasSuffix(f, "_test.go") && !whole[f] {
				t.Errorf("%s does not show %s", guide, f)
			}
		}
	}
}

// link matches a link to another page, to a heading, or to a heading of another page. Links to
// other sites have a colon.
var link = regexp.MustCompile(`\]\(([^)#:\s]*)(?:#([^)\s]*))?\)`)

// TestLinks checks that the files and the headings exist to which the pages link.
func TestLinks(t *testing.T) {
	pages := []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}
	err := filepath.WalkDir("docs", func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(p, ".md") {
			pages = append(pages, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, p := range pages {
		for _, m := range link.FindAllStringSubmatch(withoutCode(read(t, p)), -1) {
			checked++
			to := p
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(p), m[1])
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s, which does not exist", p, m[1])
				continue
			}
			if m[2] != "" && strings.HasSuffix(to, ".md") && !anchors(read(t, to))[m[2]] {
				t.Errorf("%s links to %s#%s, and that page has no such heading", p, m[1], m[2])
			}
		}
	}
	if checked < 30 {
		t.Errorf("only %d links were found", checked)
	}
}

var (
	codeBlock = regexp.MustCompile("(?ms)^```.*?^```$")
	heading   = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	dropped   = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// withoutCode removes the blocks of code, in which nothing is a link or a heading.
func withoutCode(page string) string { return codeBlock.ReplaceAllString(page, "") }

// anchors returns the names by which links refer to the headings of a page, as GitHub makes
// them: in lower case, without punctuation, with "-" for spaces. A name that occurs again has a
// number at its end.
func anchors(page string) map[string]bool {
	out, times := map[string]bool{}, map[string]int{}
	for _, m := range heading.FindAllStringSubmatch(withoutCode(page), -1) {
		text := link.ReplaceAllString(m[1], "]")
		name := strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
		if n := times[name]; n > 0 {
			out[name+"-"+strconv.Itoa(n)] = true
		}
		times[name]++
		out[name] = true
	}
	return out
}

func TestAnchors(t *testing.T) {
	page := "# Two words\n## `why -o json`, or not\n```\n# not a heading\n```\n### [Set](x.md#set)\n## Two words\n"
	got := slices.Sorted(maps.Keys(anchors(page)))
	if want := []string{"set", "two-words", "two-words-1", "why--o-json-or-not"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
