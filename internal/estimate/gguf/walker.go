package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/berth-project/berth/internal/printable"
)

// walker reads a header in order and keeps the current offset.
type walker struct {
	path  string
	in    *bufio.Reader
	order binary.ByteOrder
	at    int64
	size  int64
}

// take reads n bytes, which are valid until the next read. n must be at most the size of
// the buffer.
func (w *walker) take(n int, what string) ([]byte, error) {
	if err := w.checkSize(uint64(n), what); err != nil {
		return nil, err
	}
	b, err := w.in.Peek(n)
	if err != nil {
		return nil, w.readError(err, what)
	}
	w.at += int64(n)
	_, err = w.in.Discard(n)
	return b, err
}

// skip discards n bytes.
func (w *walker) skip(n uint64, what string) error {
	if err := w.checkSize(n, what); err != nil {
		return err
	}
	if _, err := w.in.Discard(int(n)); err != nil {
		return w.readError(err, what)
	}
	w.at += int64(n)
	return nil
}

func (w *walker) checkSize(n uint64, what string) error {
	switch left := uint64(max(w.size-w.at, 0)); {
	case n > left:
		return w.errorAt(w.at, "the file ends within its header: %s takes %d bytes and %d are left", what, n, left)
	case n > uint64(maxHeader-w.at):
		return w.errorAt(w.at, "%s takes %d bytes, which makes the header larger than %d MiB", what, n, maxHeader>>20)
	}
	return nil
}

func (w *walker) uint32(what string) (uint32, error) {
	b, err := w.take(4, what)
	if err != nil {
		return 0, err
	}
	return w.order.Uint32(b), nil
}

func (w *walker) uint64(what string) (uint64, error) {
	b, err := w.take(8, what)
	if err != nil {
		return 0, err
	}
	return w.order.Uint64(b), nil
}

// text reads a string of at most most bytes, and makes it printable.
func (w *walker) text(most uint64, what string) (string, error) {
	start := w.at
	n, err := w.uint64("the length of " + what)
	if err != nil {
		return "", err
	}
	if n > most {
		return "", w.errorAt(start, "%s claims to have %d bytes; at most %d are allowed", what, n, most)
	}
	b, err := w.take(int(n), what)
	return printable.Text(string(b)), err
}

func (w *walker) errorAt(at int64, format string, args ...any) error {
	return fmt.Errorf("%s: byte %d: %s", w.path, at, fmt.Sprintf(format, args...))
}

// readError wraps an error of the disk, or reports that the file was truncated while it
// was read.
func (w *walker) readError(err error, what string) error {
	if errors.Is(err, io.EOF) {
		return w.errorAt(w.at, "the file ends within its header, in %s", what)
	}
	return w.errorAt(w.at, "%s cannot be read: %v", what, err)
}
