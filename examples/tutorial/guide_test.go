package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var output = regexp.MustCompile("<!-- output of: (.*) -->\n```\n((?s).*?)```")

// TestGuideShowsWhatIsPrinted runs the commands of the guide and compares their output.
func TestGuideShowsWhatIsPrinted(t *testing.T) {
	guide, err := os.ReadFile("../../docs/plugins.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := output.FindAllStringSubmatch(string(guide), -1)
	if len(shown) == 0 {
		t.Error("the guide shows no output")
	}
	for _, m := range shown {
		code, out, errs := berth(t, strings.Fields(m[1])...)
		if code != 0 || !strings.Contains(out, m[2]) {
			t.Errorf("exit code %d, %s prints\n%s%s\nwithout\n%s", code, m[1], out, errs, m[2])
		}
	}
}
