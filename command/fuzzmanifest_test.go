package command

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/plugins/standard"
)

// FuzzManifest checks that manifests are either simulated to the end of the last session, and
// explained, or refused with an error.
func FuzzManifest(f *testing.F) {
	addManifests(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if isSmall(data) {
			runHostile(t, data, "simulate", "-", "-o", "json", "--explain")
			runHostile(t, data, "simulate", "--expand", "-")
		}
	})
}

// FuzzWhy checks that why explains the first pending workload of any input.
func FuzzWhy(f *testing.F) {
	addManifests(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if !isSmall(data) {
			return
		}
		b, err := manifest.Parse("f", data)
		if err != nil {
			return // FuzzManifest prints the errors
		}
		state, err := b.State()
		if err != nil || len(state.Pending()) == 0 {
			return
		}
		runHostile(t, data, "why", state.Pending()[0].ID, "-")
	})
}

// FuzzEstimate checks that the models of any manifest are estimated, or refused with an error.
func FuzzEstimate(f *testing.F) {
	addManifests(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if !isSmall(data) {
			return
		}
		name := filepath.Join(t.TempDir(), "f.yaml")
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		runHostile(t, nil, "estimate", name)
	})
}

// addManifests adds seeds: the examples, the scenarios with models, with dumps or with shapes of public
// manifests, and the first scenario of each other directory.
func addManifests(f *testing.F) {
	last := ""
	for _, root := range []string{"../examples", "../scenarios"} {
		err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
			dir := filepath.Dir(name)
			if err != nil || e.IsDir() || filepath.Ext(name) != ".yaml" {
				return err
			}
			if root == "../scenarios" && dir == last && dir != "../scenarios/shapes" && dir != "../scenarios/dumps" && !strings.HasPrefix(dir, "../scenarios/models/f") {
				return nil
			}
			last = dir
			data, err := os.ReadFile(name)
			f.Add(data)
			return err
		})
		if err != nil {
			f.Fatal(err)
		}
	}
}

// isSmall reports whether the input is so short that an answer takes little time.
func isSmall(data []byte) bool { return len(data) < 1<<16 }

// runHostile runs a command on an input, and fails if it panics, does not end, reports nothing
// or writes characters that a terminal would obey.
func runHostile(t *testing.T, data []byte, args ...string) {
	t.Helper()
	watchdog := time.AfterFunc(time.Minute, func() { panic("the command does not end: " + strings.Join(args, " ")) })
	defer watchdog.Stop()
	var out, errs bytes.Buffer
	code := Main(standard.Registry(), args, bytes.NewReader(data), &out, &errs)
	if code == exitBug || code == exitInput && errs.Len() == 0 {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	checkPrintable(t, out.String())
	checkPrintable(t, errs.String())
	if n := strings.Count(errs.String(), "\n"); code == exitInput && n > 60 {
		t.Fatalf("%d lines of errors", n)
	}
}
