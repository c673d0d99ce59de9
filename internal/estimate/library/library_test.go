package library

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	gguf "github.com/berth-project/berth/internal/estimate/gguf/sample"
	hf "github.com/berth-project/berth/internal/estimate/hf/sample"
)

func writeGGUF(t *testing.T, path, name string) {
	t.Helper()
	f, err := gguf.Named(name)
	if err == nil {
		err = f.Write(path, false)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, d := range []string{"phi-4", "llama-3.1-8b", "llama-3.1-8b-hf", "whisper-tiny", "one", "two", "parts", "none", "loop"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"phi-4", "llama-3.1-8b-hf", "whisper-tiny"} {
		if err := hf.Write(d, "llama-3.1-8b"); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("config.json", "loop/config.json"); err != nil {
		t.Fatal(err)
	}
	writeGGUF(t, "one/Model.GGUF", "llama-3.1-8b-q8_0")
	writeGGUF(t, "two/a.gguf", "llama-3.1-8b-q8_0")
	writeGGUF(t, "two/b.gguf", "llama-3.1-8b-q8_0")
	tests := map[string]struct{ name, format, shown string }{
		"a preset":                       {"phi-4-mini", "preset", "phi-4-mini"},
		"a directory before a preset":    {"phi-4", "safetensors", "phi-4"},
		"no model in the directory":      {"llama-3.1-8b", "preset", "llama-3.1-8b"},
		"a preset by its repository":     {"Qwen/Qwen2.5-Coder-7B-Instruct", "preset", "qwen2.5-coder-7b"},
		"a directory of a preset's name": {"./phi-4", "safetensors", "phi-4"},
		"a directory":                    {"llama-3.1-8b-hf", "safetensors", "llama-3.1-8b-hf"},
		"an absolute path":               {filepath.Join(dir, "llama-3.1-8b-hf"), "safetensors", "llama-3.1-8b-hf"},
		"a file":                         {"two/a.gguf", "gguf", "a"},
		"a directory with one GGUF file": {"one", "gguf", "Model.GGUF"},
		"a speech model":                 {"Systran/faster-whisper-small", "table", "whisper-small"},
		"a directory of a speech model":  {"./whisper-tiny", "safetensors", "whisper-tiny"},
	}
	for name, tt := range tests {
		m, err := Open(tt.name)
		if err != nil || m.Format != tt.format || m.Name != tt.shown {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	refused := map[string]string{
		"":             "the model's name is empty",
		"two":          "two has several models; name one, such as two/a.gguf",
		"none":         "none has neither a config.json nor a .gguf file",
		"./nothing":    "./nothing does not exist",
		"./whisper-no": "./whisper-no does not exist",
		"loop":         "too many levels of symbolic links",
		"missing.gguf": "missing.gguf does not exist",
		"phi-5":        `phi-5 is not a file or directory, and no preset is called "phi-5"; did you mean "phi-4"?`,
		"one/x\x00y":   "invalid argument",
	}
	for name, want := range refused {
		if _, err := Open(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
}

// A file is read once, and again after it has changed.
func TestFilesAreCached(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.gguf")
	writeGGUF(t, path, "llama-3.1-8b-q8_0")
	first, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Open(path); err != nil || again != first {
		t.Errorf("read again: %v", err)
	}
	writeGGUF(t, path, "llama-3.3-70b-q4_k_m")
	changed, err := Open(path)
	if err != nil || changed.Weights == first.Weights {
		t.Errorf("the old model: %+v, %v", changed, err)
	}
	if err := os.Truncate(path, 10); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil {
		t.Error("a cut file is read as if it were whole")
	}
}

func TestPartsCountAsOne(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []string{"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"} {
		if err := os.WriteFile(filepath.Join(dir, n), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files, err := ggufFiles(dir)
	if err != nil || len(files) != 1 || filepath.Base(files[0]) != "m-00001-of-00002.gguf" {
		t.Errorf("%v, %v", files, err)
	}
}
