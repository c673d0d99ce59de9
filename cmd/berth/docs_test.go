package main_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-project/berth/command"
	"github.com/berth-project/berth/plugins/standard"
	"github.com/google/go-cmp/cmp"
)

// TestDocsShowWhatIsPrinted runs the commands that pages show with their output, and
// compares the output. These are the blocks that begin with "$ berth" or, in the
// README, which first builds the binary, "$ bin/berth".
func TestDocsShowWhatIsPrinted(t *testing.T) {
	t.Chdir("../..")
	t.Setenv("COLUMNS", "80")
	pages := map[string]string{"README.md": "$ bin/berth ", filepath.Join("docs", "timeline.md"): "$ berth ", filepath.Join("docs", "models.md"): "$ berth ", filepath.Join("docs", "migration.md"): "$ berth ", filepath.Join("docs", "defrag.md"): "$ berth "}
	for page, prompt := range pages {
		t.Run(page, func(t *testing.T) { checkPage(t, page, prompt) })
	}
}

func checkPage(t *testing.T, page, prompt string) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, block := range strings.Split(string(text), "```\n"+prompt)[1:] {
		line, rest, _ := strings.Cut(block, "\n")
		want, _, _ := strings.Cut(rest, "```")
		var out, errs bytes.Buffer
		if code := command.Main(standard.Registry(), strings.Fields(line), strings.NewReader(""), &out, &errs); code != 0 {
			t.Fatalf("berth %s: exit code %d: %s", line, code, errs.String())
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("%s shows another output (-) than berth %s prints (+):\n%s", page, line, diff)
		}
		shown++
	}
	if shown == 0 {
		t.Error("no example was found")
	}
}
