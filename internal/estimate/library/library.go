// Package library opens a model by what somebody wrote: the name of a preset or
// of a speech model, a GGUF file, or a directory as Hugging Face publishes them.
// Files are read once; they are read again when they change.
package library

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/backend"
	"github.com/berth-project/berth/internal/estimate/gguf"
	"github.com/berth-project/berth/internal/estimate/hf"
	"github.com/berth-project/berth/internal/estimate/preset"
)

// Open returns the model. A name that is known is never taken for a file, so
// that the answer does not depend on where one stands; ./name is the file, and
// never looked up in a table.
// Callers share what they get and must not change it.
func Open(name string) (*estimate.Model, error) {
	if name == "" {
		return nil, errors.New("the model's name is empty")
	}
	var unknown error
	if !isPath(name) {
		var m *estimate.Model
		if m, unknown = Known(name); unknown == nil {
			return m, nil
		}
	}
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && isPath(name):
		return nil, fmt.Errorf("%s is not there", name)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s is no file or directory, and %w", name, unknown)
	case err != nil:
		return nil, err
	}
	path, read, err := reader(name, info)
	if err != nil {
		return nil, err
	}
	stamp, err := stampOf(path)
	if err != nil {
		return nil, err
	}
	return remember(path, stamp, read)
}

// Known returns the model that tables have under this name. No file is looked for.
func Known(name string) (*estimate.Model, error) {
	p, unknown := preset.Find(name)
	if unknown == nil {
		return p.Model(), nil
	}
	if s, err := backend.FindSpeech(name); err == nil {
		return speech(s), nil
	}
	return nil, unknown
}

// isPath says whether a name can only be meant as a path.
func isPath(name string) bool {
	return filepath.IsAbs(name) || strings.HasPrefix(name, ".") || isGGUF(name) || strings.HasSuffix(name, "/")
}

func isGGUF(name string) bool { return strings.EqualFold(filepath.Ext(name), ".gguf") }

// speech is a model of which a table says what it takes in all.
func speech(s backend.Speech) *estimate.Model {
	return &estimate.Model{
		Name: s.Name, Format: "table",
		Weights: estimate.Weights{Layers: s.Memory, Parameters: s.Parameters},
		Assumed: []string{"The memory is from a table and is all that the model takes, not its weights alone."},
	}
}

// reader says what reads the file or directory, and which file it is in the end.
func reader(name string, info fs.FileInfo) (path string, read func(string) (*estimate.Model, error), err error) {
	switch {
	case isGGUF(name) && !info.IsDir():
		return name, gguf.Read, nil
	case !info.IsDir():
		return "", nil, fmt.Errorf("%s is no model: a .gguf file is one, and a directory with config.json and safetensors files", name)
	}
	switch _, err := os.Stat(filepath.Join(name, "config.json")); {
	case err == nil:
		return name, hf.Read, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", nil, err // it is there: a link to itself, say
	}
	files, err := ggufs(name)
	switch {
	case err != nil:
		return "", nil, err
	case len(files) == 0:
		return "", nil, fmt.Errorf("%s has neither a config.json nor a .gguf file", name)
	case len(files) > 1:
		return "", nil, fmt.Errorf("%s has several models: name one, such as %s", name, files[0])
	}
	return files[0], gguf.Read, nil
}

// ggufs are the GGUF models of a directory; of one in parts only the first counts.
func ggufs(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if n := strings.ToLower(e.Name()); isGGUF(n) && (!strings.Contains(n, "-of-") || strings.Contains(n, "-00001-of-")) {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	slices.Sort(out)
	return out, nil
}

var memory struct {
	sync.Mutex
	models map[string]remembered
}

type remembered struct {
	stamp string
	model *estimate.Model
}

// remember keeps models, never errors: what was wrong may be mended without a
// trace in size or time.
func remember(path, stamp string, read func(string) (*estimate.Model, error)) (*estimate.Model, error) {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	memory.Lock()
	defer memory.Unlock()
	if r, ok := memory.models[path]; ok && r.stamp == stamp {
		return r.model, nil
	}
	m, err := read(path)
	if err != nil {
		return nil, err
	}
	if memory.models == nil {
		memory.models = map[string]remembered{}
	}
	memory.models[path] = remembered{stamp, m}
	return m, nil
}

// stampOf tells apart what is on disk from what was: sizes and times of the file
// and of all beside it, since a model may be in parts.
func stampOf(path string) (string, error) {
	dir := path
	if isGGUF(path) {
		dir = filepath.Dir(path)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, e := range entries {
		if dir != path && !isGGUF(e.Name()) {
			continue // neighbours that cannot be a part of it
		}
		if info, err := os.Stat(filepath.Join(dir, e.Name())); err == nil { // follows links, as caches of models have them
			fmt.Fprintf(&b, "%s %d %d\n", e.Name(), info.Size(), info.ModTime().UnixNano())
		}
	}
	return b.String(), nil
}
