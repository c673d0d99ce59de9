package command

import (
	"bytes"
	"io"
	"path/filepath"
	"testing"

	"github.com/berth-project/berth/plugins/standard"
)

// FuzzSnapshot checks that any input is either simulated or reported as an error,
// and never makes the command panic.
func FuzzSnapshot(f *testing.F) {
	for _, in := range []string{"examples/quickstart", "examples/reclaim", "examples/models", "examples/provision", "scenarios/gangs", "scenarios/sharing", "scenarios/queues"} {
		files, err := filepath.Glob(filepath.Join("..", in, "*.yaml"))
		if err != nil {
			f.Fatal(err)
		}
		if in[0] == 'e' {
			files = []string{filepath.Join("..", in)}
		}
		for _, name := range files {
			p := &program{registry: standard.Registry(), stdout: io.Discard, stderr: io.Discard}
			b, err := p.load([]string{name}, &inputFlags{})
			if err != nil {
				f.Fatal(err)
			}
			e, state, err := p.prepare(b)
			if err != nil {
				f.Fatal(err)
			}
			var out bytes.Buffer
			if err := b.Snapshot(state, b.Now(), e.Parameters()).Write(&out); err != nil {
				f.Fatal(err)
			}
			f.Add(out.Bytes())
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var errs bytes.Buffer
		code := Main(standard.Registry(), []string{"simulate", "-"}, bytes.NewReader(data), io.Discard, &errs)
		if code == exitBug || code == exitInput && errs.Len() == 0 {
			t.Fatalf("exit %d: %s", code, errs.String())
		}
	})
}
