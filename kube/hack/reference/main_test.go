package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReferenceIsFresh checks that the pages list every flag, metric and reason.
func TestReferenceIsFresh(t *testing.T) {
	pages, err := pages()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range pages {
		got, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("docs/reference/%s is stale: run make kube-docs\n%s", name, diff)
		}
	}
}

func TestSubcommands(t *testing.T) {
	const help = "Explains.\n\nAvailable Commands:\n  completion  Generate\n  help        Help\n  why         Explain\n  top         Show\n\nFlags:\n  -h, --help  help\n"
	if diff := cmp.Diff([]string{"why", "top"}, subcommands(help)); diff != "" {
		t.Error(diff)
	}
}

// names match what users see in objects: keys of labels and annotations, reasons of events, and
// reasons of conditions.
var names = []*regexp.Regexp{
	regexp.MustCompile(`"((?:berth\.dev|[a-z-]+\.com|[a-z0-9.-]*(?:k8s\.io|koordinator\.sh|volcano\.sh)|kai\.scheduler|ray\.io|batch\.kubernetes\.io)/[a-z0-9-]+)"`),
	regexp.MustCompile(`Eventf\([^"\n]*"(\w+)"`),
	regexp.MustCompile(`\bReason\w+\s*=\s*"(\w+)"`),
}

// TestNamesAreDocumented checks that the page about objects, or that about dumps, has every name in
// the code.
func TestNamesAreDocumented(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	var page strings.Builder
	for _, name := range []string{"kubernetes-reference.md", "dumps.md"} {
		text, err := os.ReadFile(filepath.Join(root, "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		page.Write(text)
	}
	found := 0
	for _, pattern := range []string{"internal/feed/*.go", "kube/internal/scheduler/*.go", "kube/internal/controller/*.go", "kube/internal/workload/*.go", "api/v1alpha1/*.go"} {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			code, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, expression := range names {
				for _, m := range expression.FindAllStringSubmatch(string(code), -1) {
					if found++; !strings.Contains(page.String(), m[1]) {
						t.Errorf("%s has %s, which neither docs/kubernetes-reference.md nor docs/dumps.md mentions", file, m[1])
					}
				}
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d names were found", found)
	}
}
