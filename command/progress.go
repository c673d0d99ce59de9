package command

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"
)

// progress shows on a terminal what a command is doing, once it has taken longer than two
// seconds. The line is overwritten while the command works, and removed at its end.
type progress struct {
	from time.Time // when the command began
	mu   sync.Mutex
	w    io.Writer // nil if there is no terminal
	text string
	stop chan struct{} // is closed by end
	once sync.Once
	done chan struct{} // is closed when nothing is written any more
}

const (
	progressAfter = 2 * time.Second
	progressEvery = 200 * time.Millisecond
)

// startProgress returns a progress that writes to w if w is a terminal, of a command that began
// at the given time. The caller must call end.
func startProgress(w io.Writer, from time.Time) *progress {
	p := &progress{from: from, stop: make(chan struct{}), done: make(chan struct{})}
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || !isTerminal(f) {
		close(p.done)
		return p
	}
	p.w = f
	go p.show()
	return p
}

func (p *progress) show() {
	defer close(p.done)
	wait, shown := progressAfter-time.Since(p.from), false
	for {
		select {
		case <-p.stop:
			if shown {
				fmt.Fprint(p.w, "\r\x1b[K")
			}
			return
		case <-time.After(wait):
		}
		p.mu.Lock()
		text := p.text
		p.mu.Unlock()
		if wait = progressEvery; text != "" {
			shown = true
			fmt.Fprint(p.w, "\r\x1b[K"+line(text, columns()-1))
		}
	}
}

// line returns the text as a line of at most the given number of characters. Characters that a
// terminal would obey are replaced.
func line(text string, most int) string {
	out := []rune(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text))
	if len(out) > most {
		out = append(out[:most-1], '…')
	}
	return string(out)
}

// set says what the command is doing.
func (p *progress) set(text string) {
	if p.w == nil {
		return
	}
	p.mu.Lock()
	p.text = text
	p.mu.Unlock()
}

// end removes the line. It may be called more than once.
func (p *progress) end() {
	p.once.Do(func() { close(p.stop) })
	<-p.done
}
