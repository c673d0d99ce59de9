package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestManyErrors checks that an object with many mistakes gives at most 50 errors, each of them
// short, in the order of their lines.
func TestManyErrors(t *testing.T) {
	var labels strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&labels, "    l%s%d: '-'\n", strings.Repeat("x", i%300), i)
	}
	_, err := Parse("f", []byte("apiVersion: berth.dev/v1alpha1\nkind: Job\nmetadata:\n  name: j\n  labels:\n"+labels.String()+"spec: {tasks: [{name: w}]}\n"))
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 51 || !strings.HasPrefix(lines[0], "f:6:9: metadata.labels.l0: ") || lines[50] != "… and 19950 more errors" {
		t.Errorf("%d lines, from %q to %q", len(lines), lines[0], lines[len(lines)-1])
	}
	if len(err.Error()) > 51*500 {
		t.Errorf("the errors have %d bytes", len(err.Error()))
	}
}

// TestDirectoryTooLarge checks that no file of a directory with too many entries is read.
func TestDirectoryTooLarge(t *testing.T) {
	dir := t.TempDir()
	for i := range 5 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.yaml", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for most, want := range map[int]string{6: "", 5: dir + ": the directory has more than 5 files and directories below it; name one that has manifests only"} {
		names, errs := (&lister{seen: map[string]bool{}, most: most}).files([]string{dir})
		if got := errs.Error(); got != want || (len(names) == 5) != (want == "") {
			t.Errorf("at most %d entries: %q, %q", most, names, got)
		}
	}
}

// TestKernelFiles checks that files of the kernel, of which reading may never end, are not read.
func TestKernelFiles(t *testing.T) {
	const name = "/proc/version"
	if _, err := os.Stat(name); err != nil {
		t.Skip("there is no /proc")
	}
	dir := t.TempDir()
	link := filepath.Join(dir, "f.yaml")
	if err := os.Symlink(name, link); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{name, "/proc", "/proc/self", "/proc/../proc/version", link, dir} {
		if _, err := Load([]string{p}); err == nil || !strings.HasSuffix(err.Error(), ": "+kernelText) {
			t.Errorf("%s: %v", p, err)
		}
	}
	if _, err := Models(link); err == nil || err.Error() != link+": "+kernelText {
		t.Errorf("as a model: %v", err)
	}
}
