package manifest

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/phrase"
	"github.com/berth-project/berth/internal/strict"
)

// stdinName names standard input in errors.
const stdinName = "<stdin>"

var extensions = []string{".yaml", ".yml", ".json"}

// Files returns the files at the paths, each once. Of a directory it returns all .yaml,
// .yml and .json files below it, in the order of their names, except hidden ones and the
// .json files of a model. The path "-" is returned as it is. Links are followed, except
// links to directories inside a directory, which could form a cycle. A directory with more than
// 100,000 entries below it is an error, and so is what the kernel shows below /proc and /sys.
func Files(paths []string) ([]string, error) {
	names, errs := files(paths)
	return names, errs.Err()
}

// maxEntries is how many files and directories a directory may have below it, of all kinds.
const maxEntries = 100_000

func files(paths []string) ([]string, Errors) {
	return (&lister{seen: map[string]bool{}, most: maxEntries}).files(paths)
}

func (l *lister) files(paths []string) ([]string, Errors) {
	for _, p := range paths {
		info, err := os.Stat(p)
		switch {
		case p == "-":
			l.add(p)
		case p == "":
			l.fail(`""`, "a path is empty: name a file or a directory, or - for standard input")
		case err != nil:
			l.fail(p, "cannot be read: "+cause(err))
		case info.IsDir():
			l.directory(p)
		default:
			l.file(p, info)
		}
	}
	return l.names, l.errs
}

type lister struct {
	names []string
	seen  map[string]bool
	most  int // entries below a directory
	errs  Errors
}

func (l *lister) fail(name, message string) {
	l.errs = append(l.errs, Error{File: name, Message: message})
}

func (l *lister) add(name string) {
	id := name
	if name != "-" { // several links to one file count as one
		if real, err := filepath.EvalSymlinks(name); err == nil {
			id = real
		}
		if abs, err := filepath.Abs(id); err == nil {
			id = abs
		}
	}
	if !l.seen[id] {
		l.seen[id] = true
		l.names = append(l.names, name)
	}
}

// file adds a file that can be read to its end. A pipe is accepted only if the shell has
// opened it: opening any other pipe waits for a writer, possibly forever.
func (l *lister) file(name string, info fs.FileInfo) {
	switch {
	case ofKernel(name):
		l.fail(name, kernelText)
	case info.Mode().IsRegular(), info.Mode()&fs.ModeNamedPipe != 0 && openedByShell(name):
		l.add(name)
	case info.Mode()&fs.ModeNamedPipe != 0:
		l.fail(name, "is a pipe, which might never end; use - for standard input: berth … - < "+name)
	default:
		l.fail(name, "is neither a file nor a directory; use - for standard input")
	}
}

// openedByShell reports whether the name is standard input, or a descriptor such as the
// shell passes for <(command).
func openedByShell(name string) bool {
	return name == "/dev/stdin" || strings.HasPrefix(name, "/dev/fd/") || strings.HasPrefix(name, "/proc/self/fd/")
}

const kernelText = "is shown by the kernel, and reading it might never end; use - for standard input"

// ofKernel reports whether the name is a file or directory below /proc or /sys, however it is
// linked. Some of these files have no end. Descriptors of the process are other files.
func ofKernel(name string) bool {
	real, err := filepath.EvalSymlinks(name)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	return err == nil && !openedByShell(name) && (strings.HasPrefix(real+"/", "/proc/") || strings.HasPrefix(real+"/", "/sys/"))
}

func (l *lister) directory(root string) {
	if ofKernel(root) {
		l.fail(root, kernelText)
		return
	}
	names, errs := len(l.names), len(l.errs)
	entries := 0
	known := 0                 // files that were found by another path before
	model := map[string]bool{} // directories that contain a model
	// The separator at the end makes WalkDir follow a link to a directory.
	err := filepath.WalkDir(root+string(filepath.Separator), func(name string, e fs.DirEntry, err error) error {
		if entries++; entries > l.most {
			l.names = l.names[:names]
			l.fail(root, "the directory has more than "+english.Thousands(l.most)+" files and directories below it; name one that has manifests only")
			return fs.SkipAll
		}
		hidden := filepath.Clean(name) != filepath.Clean(root) && e != nil && strings.HasPrefix(e.Name(), ".")
		switch {
		case err != nil:
			l.fail(name, "cannot be read: "+cause(err))
			return nil
		case hidden && e.IsDir():
			return fs.SkipDir
		case e.IsDir():
			model[filepath.Clean(name)] = holdsModel(name)
			return nil
		case hidden, model[filepath.Dir(name)] && filepath.Ext(name) == ".json", !slices.Contains(extensions, strings.ToLower(filepath.Ext(name))):
			return nil
		}
		// A mounted ConfigMap consists of links to files, which are followed. A file that
		// cannot be read is an error here as well.
		info, err := os.Stat(name)
		switch {
		case err != nil:
			l.fail(name, "cannot be read: "+cause(err))
		case !info.IsDir():
			before := len(l.names)
			if l.file(name, info); len(l.names) == before {
				known++
			}
		}
		return nil
	})
	if err != nil {
		l.fail(root, "cannot be read: "+cause(err))
	} else if len(l.names) == names && len(l.errs) == errs && known == 0 {
		why := "the directory has no " + phrase.Either(extensions) + " file"
		if holdsModel(root) {
			why = "the directory holds a model, not manifests; name it in a Model, under source"
		}
		l.fail(root, why)
	}
}

// holdsModel reports whether the directory contains a model or an adapter in the layout
// of Hugging Face: a configuration, and weights or an index of weights.
func holdsModel(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false // the walk reports the error
	}
	var config, weights bool
	for _, e := range entries {
		config = config || e.Name() == "config.json" || e.Name() == "adapter_config.json"
		weights = weights || strings.HasSuffix(strings.TrimSuffix(e.Name(), ".index.json"), ".safetensors")
	}
	return config && weights
}

// cause returns the message of the error without the path, which errors name anyway.
func cause(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// checkFile returns an error for a file of which reading might never end.
func checkFile(name string) Errors {
	l := lister{seen: map[string]bool{}}
	if info, err := os.Stat(name); err == nil && !info.IsDir() {
		l.file(name, info)
	}
	return l.errs
}

// read returns the content of a file, and the name of the file in errors.
func read(p string, stdin io.Reader) (string, []byte, *Error) {
	name, in := p, stdin
	var size int64
	if p == "-" {
		name = stdinName
	} else {
		f, err := os.Open(p)
		if err != nil {
			return name, nil, &Error{File: name, Message: "cannot be read: " + cause(err)}
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil {
			size = info.Size()
		}
		in = f
	}
	buffered := bufio.NewReaderSize(in, snapshotHead)
	head, _ := buffered.Peek(snapshotHead) // a file that cannot be read fails below
	most, tooLarge := int64(strict.MaxSize), strict.TooLarge
	if isSnapshot(head) {
		most, tooLarge = maxSnapshotSize, snapshotTooLarge
	}
	if size > most {
		return name, nil, &Error{File: name, Message: tooLarge}
	}
	data, err := readAll(io.LimitReader(buffered, most+1), size)
	if err != nil {
		return name, nil, &Error{File: name, Message: "cannot be read: " + cause(err)}
	}
	return name, data, nil
}

// readAll reads to the end of the file, of which the size is known or 0. The limit of the
// reader is one byte more than is allowed, so that parse detects a file that is too large.
func readAll(in io.Reader, size int64) ([]byte, error) {
	if size <= 0 {
		return io.ReadAll(in)
	}
	// One allocation is enough, unless the file has grown in the meantime.
	data := make([]byte, size)
	n, err := io.ReadFull(in, data)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return data[:n], nil
	}
	if err != nil {
		return nil, err
	}
	rest, err := io.ReadAll(in)
	return append(data, rest...), err
}
