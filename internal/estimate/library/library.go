// Package library opens a model by its name or path: a preset, a speech model, a GGUF
// file, or a directory as published on Hugging Face. Files are read once, and again
// after they change.
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

// Open returns the model with this name or path. A directory takes precedence over a preset
// of the same name, and the assumptions of the model say so. A name such as ./name is always
// a path and is not looked up in the tables. Callers share the result and must not change
// it.
func Open(name string) (*estimate.Model, error) {
	if name == "" {
		return nil, errors.New("the model's name is empty")
	}
	var unknown error
	if !isPath(name) {
		var m *estimate.Model
		if m, unknown = Known(name); unknown == nil {
			if !hasModel(name) {
				return m, nil
			}
			local, err := Open("./" + name)
			if err != nil {
				return nil, err
			}
			own := *local
			own.Assumed = append(slices.Clone(local.Assumed), fmt.Sprintf("The model is read from the directory %s; the preset of that name is not used.", name))
			return &own, nil
		}
	}
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && isPath(name):
		return nil, fmt.Errorf("%s does not exist", name)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s is not a file or directory, and %w", name, unknown)
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
	return readCached(path, stamp, read)
}

// hasModel reports whether there is a directory of this name with the files of a model.
func hasModel(name string) bool {
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() {
		return false
	}
	if _, err := os.Stat(filepath.Join(name, "config.json")); err == nil {
		return true
	}
	files, err := ggufFiles(name)
	return err == nil && len(files) > 0
}

// Known returns the preset or speech model with this name. It does not read files.
func Known(name string) (*estimate.Model, error) {
	p, unknown := preset.Find(name)
	if unknown == nil {
		return p.Model(), nil
	}
	if s, err := backend.FindSpeech(name); err == nil {
		return speechModel(s), nil
	}
	return nil, unknown
}

// isPath reports whether a name can only be a path.
func isPath(name string) bool {
	return filepath.IsAbs(name) || strings.HasPrefix(name, ".") || isGGUF(name) || strings.HasSuffix(name, "/")
}

func isGGUF(name string) bool { return strings.EqualFold(filepath.Ext(name), ".gguf") }

// speechModel returns a model with a total memory that is listed in a table.
func speechModel(s backend.Speech) *estimate.Model {
	return &estimate.Model{
		Name: s.Name, Format: "table",
		Weights: estimate.Weights{Layers: s.Memory, Parameters: s.Parameters},
		Assumed: []string{"The memory is from a table and is all that the model takes, not its weights alone."},
	}
}

// reader returns the function that reads the file or directory, and the path to read.
func reader(name string, info fs.FileInfo) (path string, read func(string) (*estimate.Model, error), err error) {
	switch {
	case isGGUF(name) && !info.IsDir():
		return name, gguf.Read, nil
	case !info.IsDir():
		return "", nil, fmt.Errorf("%s is not a model; name a .gguf file, or a directory with config.json and safetensors files", name)
	}
	switch _, err := os.Stat(filepath.Join(name, "config.json")); {
	case err == nil:
		return name, hf.Read, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", nil, err // config.json exists but cannot be read, for example because it is a link to itself
	}
	files, err := ggufFiles(name)
	switch {
	case err != nil:
		return "", nil, err
	case len(files) == 0:
		return "", nil, fmt.Errorf("%s has neither a config.json nor a .gguf file", name)
	case len(files) > 1:
		return "", nil, fmt.Errorf("%s has several models; name one, such as %s", name, files[0])
	}
	return files[0], gguf.Read, nil
}

// ggufFiles returns the GGUF models of a directory. Of a model in several parts only the
// first part is returned.
func ggufFiles(dir string) ([]string, error) {
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

var cache struct {
	sync.Mutex
	models map[string]cacheEntry
}

type cacheEntry struct {
	stamp string
	model *estimate.Model
}

// readCached returns the cached model if the stamp is unchanged, and else reads it.
// Errors are not cached, because their cause may be removed without a change of size or
// time.
func readCached(path, stamp string, read func(string) (*estimate.Model, error)) (*estimate.Model, error) {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	cache.Lock()
	defer cache.Unlock()
	if r, ok := cache.models[path]; ok && r.stamp == stamp {
		return r.model, nil
	}
	m, err := read(path)
	if err != nil {
		return nil, err
	}
	if cache.models == nil {
		cache.models = map[string]cacheEntry{}
	}
	cache.models[path] = cacheEntry{stamp, m}
	return m, nil
}

// stampOf returns the sizes and modification times of the file and of its neighbours,
// because a model may consist of several files.
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
			continue // such a neighbour cannot be a part of the model
		}
		if info, err := os.Stat(filepath.Join(dir, e.Name())); err == nil { // Stat follows links, which caches of models use
			fmt.Fprintf(&b, "%s %d %d\n", e.Name(), info.Size(), info.ModTime().UnixNano())
		}
	}
	return b.String(), nil
}
