package command

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/printable"
)

// progress shows on a terminal what a command is doing, once it has taken longer than two
// seconds. The line is overwritten while the command works, and removed at its end. A nil progress
// shows nothing.
type progress struct {
	mu    sync.Mutex
	w     io.Writer
	text  string
	shown bool          // the line is on the terminal
	stop  chan struct{} // is closed by end
	once  sync.Once
	done  chan struct{} // is closed when nothing is written any more
}

const (
	progressAfter = 2 * time.Second
	progressEvery = 200 * time.Millisecond
)

// screen is the terminal on which the progress of a command is shown.
type screen struct {
	w     io.Writer // nil if there is none
	after func(time.Duration) <-chan time.Time
}

// screenOf returns the screen of w, which shows nothing if w is not a terminal.
func screenOf(w io.Writer) screen {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || !isTerminal(f) {
		return screen{}
	}
	return screen{f, time.After}
}

// start returns a progress, of which the caller must call end. It returns nil if there is no
// terminal.
func (s screen) start() *progress {
	if s.w == nil {
		return nil
	}
	p := &progress{w: s.w, stop: make(chan struct{}), done: make(chan struct{})}
	go p.show(s.after)
	return p
}

func (p *progress) show(after func(time.Duration) <-chan time.Time) {
	defer close(p.done)
	for wait := progressAfter; ; wait = progressEvery {
		select {
		case <-p.stop:
			p.around(func() {})
			return
		case <-after(wait):
		}
		p.mu.Lock()
		if p.text != "" {
			p.shown = true
			fmt.Fprint(p.w, "\r\x1b[K"+p.text)
		}
		p.mu.Unlock()
	}
}

// around removes the line, and calls write, which may write to the terminal.
func (p *progress) around(write func()) {
	if p == nil {
		write()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	p.shown = false
	write()
}

// set says what the command is doing. The text is cut so that it fits into one line.
func (p *progress) set(format string, args ...any) {
	if p == nil {
		return
	}
	text := printable.Text(fmt.Sprintf(format, args...))
	if most := columns() - 1; utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:most-1]) + "…"
	}
	p.mu.Lock()
	p.text = text
	p.mu.Unlock()
}

// reading says how much of a file was read. See manifest.Loader.
func (p *progress) reading(file string, objects int) {
	count := english.Thousands(objects) + " " + english.Noun(objects, "object")
	switch {
	case file == "":
		p.set("checking %s", count)
	case objects == 0:
		p.set("reading %s", file)
	default:
		p.set("%s read of %s", count, file)
	}
}

// end removes the line. It may be called more than once.
func (p *progress) end() {
	if p == nil {
		return
	}
	p.once.Do(func() { close(p.stop) })
	<-p.done
}
