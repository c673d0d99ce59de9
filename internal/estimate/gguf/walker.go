package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/berth-project/berth/internal/printable"
)

// walker reads a header in order and knows where it is.
type walker struct {
	path  string
	in    *bufio.Reader
	order binary.ByteOrder
	at    int64
	size  int64
}

// take reads n bytes; they are valid until the next read. n is small.
func (w *walker) take(n int, what string) ([]byte, error) {
	if err := w.room(uint64(n), what); err != nil {
		return nil, err
	}
	b, err := w.in.Peek(n)
	if err != nil {
		return nil, w.failed(err, what)
	}
	w.at += int64(n)
	_, err = w.in.Discard(n)
	return b, err
}

// skip passes over n bytes.
func (w *walker) skip(n uint64, what string) error {
	if err := w.room(n, what); err != nil {
		return err
	}
	if _, err := w.in.Discard(int(n)); err != nil {
		return w.failed(err, what)
	}
	w.at += int64(n)
	return nil
}

func (w *walker) room(n uint64, what string) error {
	switch left := uint64(max(w.size-w.at, 0)); {
	case n > left:
		return w.wrong(w.at, "the file ends within its header: %s takes %d bytes and %d are left", what, n, left)
	case n > uint64(maxHeader-w.at):
		return w.wrong(w.at, "%s takes %d bytes, with which the header is larger than %d MiB", what, n, maxHeader>>20)
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

// text reads a string that may not be longer than most, and makes it printable.
func (w *walker) text(most uint64, what string) (string, error) {
	start := w.at
	n, err := w.uint64("the length of " + what)
	if err != nil {
		return "", err
	}
	if n > most {
		return "", w.wrong(start, "%s is said to have %d bytes; %d are the most", what, n, most)
	}
	b, err := w.take(int(n), what)
	return printable.Text(string(b)), err
}

func (w *walker) wrong(at int64, format string, args ...any) error {
	return fmt.Errorf("%s: byte %d: %s", w.path, at, fmt.Sprintf(format, args...))
}

// failed is for a file that is cut while it is read, or a disk that fails.
func (w *walker) failed(err error, what string) error {
	if errors.Is(err, io.EOF) {
		return w.wrong(w.at, "the file ends within its header, in %s", what)
	}
	return w.wrong(w.at, "%s cannot be read: %v", what, err)
}
