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

	"github.com/berth-project/berth/internal/phrase"
	"github.com/berth-project/berth/internal/strict"
)

// stdinName stands for standard input in errors.
const stdinName = "<stdin>"

var extensions = []string{".yaml", ".yml", ".json"}

// Files lists the files that paths lead to: each once, directories in name
// order with all .yaml, .yml and .json below them, save the .json beside a model's
// weights; "-" stays as it is. Links are followed, except those to directories
// inside a directory, which could go in circles.
func Files(paths []string) ([]string, error) {
	names, errs := files(paths)
	return names, errs.Err()
}

func files(paths []string) ([]string, Errors) {
	l := lister{seen: map[string]bool{}}
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
	errs  Errors
}

func (l *lister) fail(name, message string) {
	l.errs = append(l.errs, Error{File: name, Message: message})
}

func (l *lister) add(name string) {
	id := name
	if name != "-" { // a file that several links lead to is one file
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

// file takes what can be read to its end. A pipe is only believed to have one
// where the shell opened it: opening another waits for a writer, maybe for ever.
func (l *lister) file(name string, info fs.FileInfo) {
	switch {
	case info.Mode().IsRegular(), info.Mode()&fs.ModeNamedPipe != 0 && openedByShell(name):
		l.add(name)
	case info.Mode()&fs.ModeNamedPipe != 0:
		l.fail(name, "is a pipe, which might never end; use - for standard input: berth … - < "+name)
	default:
		l.fail(name, "is neither a file nor a directory; use - for standard input")
	}
}

// openedByShell: standard input by its other name, and what <(command) stands for.
func openedByShell(name string) bool {
	return name == "/dev/stdin" || strings.HasPrefix(name, "/dev/fd/") || strings.HasPrefix(name, "/proc/self/fd/")
}

func (l *lister) directory(root string) {
	names, errs := len(l.names), len(l.errs)
	known := 0                 // files that another path led to already
	model := map[string]bool{} // whether a directory holds one
	// With a separator at its end a link to a directory is the directory.
	err := filepath.WalkDir(root+string(filepath.Separator), func(name string, e fs.DirEntry, err error) error {
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
		// A mounted config map is links to files, which are read like files. What
		// looks like a manifest and cannot be read is no less wrong in here.
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

// holdsModel reports whether a directory is a model or an adapter as Hugging Face
// lays them out: a configuration beside weights, or beside an index of them.
func holdsModel(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false // whoever walks it says so
	}
	var config, weights bool
	for _, e := range entries {
		config = config || e.Name() == "config.json" || e.Name() == "adapter_config.json"
		weights = weights || strings.HasSuffix(strings.TrimSuffix(e.Name(), ".index.json"), ".safetensors")
	}
	return config && weights
}

// cause drops the path that the system's errors repeat.
func cause(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// read returns a file's name in errors and its content.
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

// readAll reads to the end, or to the limit of the reader: so far that parse sees
// that it is too much.
func readAll(in io.Reader, size int64) ([]byte, error) {
	if size <= 0 {
		return io.ReadAll(in)
	}
	// The size is known, save for a file that still grows: no doubling and copying.
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
