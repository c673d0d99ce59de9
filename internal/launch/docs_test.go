package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/serving.md names the image and the port of each server, and every flag and variable that is
// written. The comment of server.command names every variable.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/serving.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	if text, err = os.ReadFile("../../api/v1alpha1/model.go"); err != nil {
		t.Fatal(err)
	}
	types := string(text)
	spec := map[string]string{"vllm": "{source: {preset: llama-3.1-8b}}", "sglang": "{backend: sglang, source: {preset: llama-3.1-8b}}", "llamacpp": "{source: {gguf: /a.gguf}}"}
	for name := range programs {
		s, err := Of(replicaOf(t, spec[name], one, 1))
		if err != nil {
			t.Fatal(err)
		}
		row := regexp.MustCompile(`(?m)^\| ` + name + " \\| `" + regexp.QuoteMeta(s.Image) + "`.*\\| " + fmt.Sprint(s.Port) + " \\| `" + s.Health + "` \\|$")
		if !row.MatchString(page) {
			t.Errorf("the page has no row for %s with the image %s, port %d and %s", name, s.Image, s.Port, s.Health)
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	word, checked := regexp.MustCompile(`"(--[a-z][a-z0-9-]+|BERTH_[A-Z_]+)"`), 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range word.FindAllStringSubmatch(string(code), -1) {
			checked++
			if !regexp.MustCompile(regexp.QuoteMeta(m[1]) + `[^a-z0-9-]`).MatchString(page) {
				t.Errorf("the page does not name %s, which is in %s", m[1], file)
			}
			if strings.HasPrefix(m[1], "BERTH_") && !strings.Contains(types, "$("+m[1]+")") {
				t.Errorf("the comment of server.command does not name %s", m[1])
			}
		}
	}
	if checked < 60 {
		t.Errorf("only %d flags and variables were found", checked)
	}
}
