package berth_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const guide = "docs/plugins.md"

// block is code that a page shows, with the line that says where it is from:
// "file: PATH" for a whole file, "part of: PATH" for lines of it that stand together.
var block = regexp.MustCompile("(?m)^(?:<!-- (file|part of): (.*) -->\n)?```(go|yaml)\n((?s).*?\n)```$")

// TestGuideShowsCodeThatRuns keeps the guide from drifting away from the code:
// what it shows is what is compiled and tested.
func TestGuideShowsCodeThatRuns(t *testing.T) {
	page := read(t, guide)
	whole := map[string]bool{}
	for _, m := range block.FindAllStringSubmatch(page, -1) {
		kind, path, shown := m[1], m[2], m[4]
		if kind == "" {
			t.Errorf("%s shows code without saying which file it is from:\n%s", guide, shown)
			continue
		}
		code := read(t, path)
		switch {
		case kind == "file" && shown != code:
			t.Errorf("%s shows %s, but not as it is; copy the file into the page", guide, path)
		case kind == "part of" && !strings.Contains("\n"+code, "\n"+shown):
			t.Errorf("%s shows a part of %s that is not there; copy it into the page again:\n%s", guide, path, shown)
		}
		whole[path] = whole[path] || kind == "file"
	}
	// Whoever types in what the page shows has the whole program.
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

var link = regexp.MustCompile(`\]\(([^)#:\s]+)(#[^)]*)?\)`)

// TestLinksLeadSomewhere follows the links between the pages and into the code.
func TestLinksLeadSomewhere(t *testing.T) {
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
	followed := 0
	for _, p := range pages {
		for _, m := range link.FindAllStringSubmatch(read(t, p), -1) {
			followed++
			if _, err := os.Stat(filepath.Join(filepath.Dir(p), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", p, m[1])
			}
		}
	}
	if followed < 30 {
		t.Errorf("only %d links were found", followed)
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
