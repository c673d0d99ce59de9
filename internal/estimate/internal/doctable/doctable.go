// Package doctable compares tables of docs/estimates.md with what tests compute, so that the
// page shows no figure that a test has not made.
package doctable

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "update the tables of docs/estimates.md")

// file is the page, from the directory of a package in internal/estimate.
const file = "../../../docs/estimates.md"

// Check compares the table between the marks with this name with the expected one. With
// -update it writes the expected one.
func Check(t *testing.T, name, table string) {
	t.Helper()
	begin, end := "<!-- "+name+" -->\n", "<!-- end "+name+" -->"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no table between %q and %q", file, begin, end)
	}
	want := before + begin + table + end + after
	switch {
	case *update:
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	case want != string(text):
		t.Errorf("the table of %s is not what the measurements and estimates give: run go test ./internal/estimate/hf ./internal/estimate/gguf -update", file)
	}
}
