package command

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-project/berth/plugins/standard"
)

// fakeTerminal is a terminal of which the test decides when time has passed.
type fakeTerminal struct {
	mu    sync.Mutex
	text  bytes.Buffer
	tick  chan time.Time // for which the progress waits
	waits []time.Duration
}

func (f *fakeTerminal) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.text.Write(p)
}

func (f *fakeTerminal) screen() screen {
	return screen{f, func(d time.Duration) <-chan time.Time {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.waits = append(f.waits, d)
		f.tick = make(chan time.Time)
		return f.tick
	}}
}

// waiting returns the tick for which the progress waits, and how many it has waited for.
func (f *fakeTerminal) waiting() (chan time.Time, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tick, len(f.waits)
}

// pass lets time pass until the progress was written, and waits for the next tick. A progress
// that has ended does not receive its tick, so that the next one is tried.
func (f *fakeTerminal) pass() {
	for {
		tick, before := f.waiting()
		select {
		case tick <- time.Time{}:
			for n := before; n == before; _, n = f.waiting() {
				time.Sleep(time.Millisecond)
			}
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// slowReader lets time pass before it returns its text.
type slowReader struct {
	io.Reader
	terminal *fakeTerminal
	once     sync.Once
}

func (r *slowReader) Read(p []byte) (int, error) {
	r.once.Do(r.terminal.pass)
	return r.Reader.Read(p)
}

// TestProgressOfReading checks that each command shows that it reads its input, if that takes
// long, and removes the line.
func TestProgressOfReading(t *testing.T) {
	const text = "apiVersion: berth.dev/v1alpha1\nkind: Node\nmetadata: {name: n}\nspec: {devices: {product: L4, count: 1, memory: 24Gi}}\n---\n" +
		"apiVersion: berth.dev/v1alpha1\nkind: Job\nmetadata: {name: j}\nspec: {tasks: [{name: w, devices: {count: 1}}]}\n"
	const scenario = "\n---\napiVersion: berth.dev/v1alpha1\nkind: Scenario\nmetadata: {name: s}\nexpect: {placements: {j: n}}\n"
	for want, list := range map[string][][]string{
		"reading <stdin>": {
			{"simulate", "-"}, {"simulate", "-", "--cycles", "2"}, {"why", "job/j", "-"}, {"why", "node/n", "-"}, {"whatif", "-", "--remove", "n"},
			{"queues", "-"}, {"anonymize", "-"}, {"migrate", "-"}, {"estimate", "phi-4", "--cluster", "-"},
		},
		"scenario 1 of 1: -": {{"verify", "-"}},
	} {
		for _, args := range list {
			t.Run(strings.Join(args, " "), func(t *testing.T) {
				var f fakeTerminal
				var out, errs bytes.Buffer
				in := text
				switch args[0] {
				case "verify":
					in += scenario
				case "migrate":
					in = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: q}\n"
				}
				p := &program{registry: standard.Registry(), stdin: &slowReader{Reader: strings.NewReader(in), terminal: &f}, screen: f.screen()}
				if code := execute(p, args, &out, &errs); code != exitOK {
					t.Fatal(code, errs.String())
				}
				if got := f.text.String(); got != "\r\x1b[K"+want+"\r\x1b[K" {
					t.Errorf("the terminal shows %q, want %q", got, want)
				}
				if n := slices.Index(f.waits, progressEvery); n < 1 || f.waits[n-1] != progressAfter {
					t.Errorf("shown after %v", f.waits)
				}
				if strings.Contains(out.String()+errs.String(), want) {
					t.Errorf("%s%s", out.String(), errs.String())
				}
			})
		}
	}
}

// TestProgress checks the line on the terminal.
func TestProgress(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	var f fakeTerminal
	p := f.screen().start()
	f.pass() // there is nothing to say yet
	p.reading("dir/\x1b[2J.yaml", 0)
	f.pass()
	p.reading("a", 12_000)
	f.pass()
	p.around(func() { io.WriteString(&f, "note\n") })
	p.reading("", 1)
	f.pass()
	p.set("%s", strings.Repeat("é", 100))
	f.pass()
	p.end()
	p.end()
	const line = "\r\x1b[K"
	want := line + "reading dir/\ufffd[2J.yaml" + line + "12,000 objects read of a" + line + "note\n" + line + "checking 1 object" + line + strings.Repeat("é", 78) + "…" + line
	if got := f.text.String(); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// TestNoProgressInFiles checks that no progress is written to a file, and that all functions of a
// progress that shows nothing can be called.
func TestNoProgressInFiles(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, w := range []io.Writer{file, &bytes.Buffer{}} {
		p := screenOf(w).start()
		if p != nil {
			t.Errorf("%T is taken for a terminal", w)
		}
		p.reading("a", 1)
		called := false
		if p.around(func() { called = true }); !called {
			t.Error("nothing is written")
		}
		p.end()
	}
}
