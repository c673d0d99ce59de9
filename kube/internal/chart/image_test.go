package chart

import (
	"debug/elf"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestImageBuild runs the command of the Dockerfile that builds the programs, on the files that
// .dockerignore lets through, and checks that they are static.
func TestImageBuild(t *testing.T) {
	context, out := t.TempDir(), t.TempDir()
	for line := range strings.Lines(string(read(t, ".dockerignore"))) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "!"); ok {
			copyTree(t, filepath.Join(root(t), path), filepath.Join(context, path))
		}
	}
	build := exec.CommandContext(t.Context(), filepath.Join(context, "hack/image/build.sh"), out)
	build.Env = append(os.Environ(), "TARGETOS=linux", "TARGETARCH="+runtime.GOARCH, "VERSION=v1.2.3", "COMMIT=abc")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	want, err := filepath.Glob(filepath.Join(root(t), "kube/cmd/berth-*"))
	if err != nil || len(want) == 0 {
		t.Fatalf("no programs: %v", err)
	}
	for _, program := range append(want, "berth") {
		file, err := elf.Open(filepath.Join(out, filepath.Base(program)))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, p := range file.Progs {
			if p.Type == elf.PT_INTERP {
				t.Errorf("%s is not static", program)
			}
		}
		file.Close()
	}
	if runtime.GOOS != "linux" {
		return
	}
	if text, err := exec.Command(filepath.Join(out, "berth"), "version").Output(); err != nil || !strings.HasPrefix(string(text), "berth v1.2.3 commit abc ") {
		t.Errorf("berth version: %s %v", text, err)
	}
}

// copyTree copies a file or a folder without what the last lines of .dockerignore leave out.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "testdata":
			return fs.SkipDir
		case d.IsDir() || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		target := to + strings.TrimPrefix(path, from)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(target, text, info.Mode().Perm())
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDockerfile checks that the image has no system and no root user.
func TestDockerfile(t *testing.T) {
	text := string(read(t, "Dockerfile"))
	_, last, found := strings.Cut(text, "\nFROM scratch\n")
	if !found || strings.Contains(last, "\nFROM ") || strings.Contains(last, "\nRUN ") {
		t.Error("the image is not made from scratch")
	}
	if !strings.Contains(last, "\nUSER 65532:65532\n") {
		t.Error("the user of the image is not that of the chart")
	}
}
