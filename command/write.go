package command

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/berth-project/berth/internal/manifest"
)

func (p *program) writeSnapshot(to string, inputs []string, s *manifest.Snapshot) error {
	return writeFile("--snapshot-out", to, inputs, func(w io.Writer) error {
		out := bufio.NewWriter(w)
		if err := s.Write(out); err != nil {
			return err
		}
		return out.Flush()
	})
}

// writeFile writes the file that a flag names. The file is written completely or,
// if anything fails, not changed. It must not be one of the inputs.
func writeFile(flag, to string, inputs []string, write func(io.Writer) error) error {
	info, err := os.Stat(to)
	if err == nil {
		if in := sameFile(info, inputs); in != "" {
			return fmt.Errorf("%s %s would overwrite the input %s; name another file", flag, to, in)
		}
		if info.IsDir() {
			return fmt.Errorf("%s %s is a directory; name a file", flag, to)
		}
	}
	if err == nil && !info.Mode().IsRegular() { // a device or a pipe cannot be replaced
		f, err := os.OpenFile(to, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
		return closeFile(f, write(&textWriter{w: f})) // it may be a terminal
	}
	if err := replaceFile(to, write); err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

// sameFile returns the name of the input that is the same file as info, or "".
func sameFile(info os.FileInfo, inputs []string) string {
	names, _ := manifest.Files(inputs) // an error was reported when the inputs were read
	for _, name := range names {
		if in, err := os.Stat(name); err == nil && os.SameFile(in, info) {
			return name
		}
	}
	return ""
}

// replaceFile writes a temporary file in the same directory and, once all of it is
// on the disk, renames it to name. The ID of the process is part of the temporary
// name, so that two processes do not write to the same file.
func replaceFile(name string, write func(io.Writer) error) error {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	f, err := os.OpenFile(fmt.Sprintf("%s.%d.part", name, os.Getpid()), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if err = closeFile(f, err); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error is the one to report
	}
	return err
}

// closeFile closes the file. It returns err or, if that is nil, the error of Close.
func closeFile(f *os.File, err error) error {
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}
