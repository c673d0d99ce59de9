package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/backend"
	"github.com/berth-project/berth/internal/estimate/hf"
	"github.com/berth-project/berth/internal/estimate/library"
	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/internal/phrase"
)

// sources reads the model's files, and reports whether it could.
func (m *stateMaker) sources(s *model.Spec, o *v1alpha1.Model, r reporter) bool {
	known := s.Memory.Device > 0 || s.Memory.Total > 0
	served := s.Backend
	if known {
		served = nil // who gave the memory knows what serves it
	}
	ok := true
	open := func(src *v1alpha1.ModelSource, at path, by *backend.Backend) *estimate.Model {
		name, local := sourceName(src, r)
		if name == "" {
			return nil
		}
		find := library.Open
		if src.Preset != "" {
			find = library.Known
		}
		found, err := find(name)
		read := err == nil
		if read {
			err = suits(src, found, by)
		}
		switch {
		case err == nil:
			return found
		case !read && known && src.Preset == "":
			return nil // what it needs was given
		case src.HuggingFace != "" && missingFile(name):
			r.errorf(at, "%s; huggingFace is the path of a directory that was downloaded%s", err, presetOf(src.HuggingFace))
		case local && !read:
			r.errorf(at, "%s; where it lies on the nodes alone, say how much memory it needs under memory", err)
		default:
			r.errorf(at, "%s", err)
		}
		ok = false
		return nil
	}
	s.Source = open(&o.Spec.Source, path{"spec", "source"}, served)
	if o.Spec.Draft != nil {
		s.Draft = open(o.Spec.Draft, path{"spec", "draft"}, nil)
	}
	for i, a := range o.Spec.Adapters {
		if a.Path == "" {
			continue
		}
		bytes, err := hf.ReadAdapter(beside(a.Path, r))
		if err != nil {
			r.errorf(path{"spec", "adapters", i}, "%s", err)
			ok = false
		}
		s.Adapters += bytes
	}
	return ok
}

// sourceName is what the library knows the source by, and whether it may lie on
// the nodes alone.
func sourceName(o *v1alpha1.ModelSource, r reporter) (name string, local bool) {
	switch {
	case o.Preset != "":
		return o.Preset, false
	case o.GGUF != "":
		return beside(o.GGUF, r), false
	case o.HuggingFace != "":
		return beside(o.HuggingFace, r), false
	}
	if o.LocalPath != "" {
		return beside(o.LocalPath, r), true
	}
	return "", false
}

// beside is a path as seen from the manifest it is written in. It can only be
// meant as a path.
func beside(name string, r reporter) string {
	if filepath.IsAbs(name) {
		return name
	}
	dir := "."
	if r.src != nil && r.src.file != "" {
		dir = filepath.Dir(r.src.file)
	}
	name = filepath.Join(dir, name)
	if !filepath.IsAbs(name) {
		name = "." + string(filepath.Separator) + name
	}
	return name
}

// formats say what a model is, by what it was read from.
var formats = map[string]string{"safetensors": "safetensors", "preset": "presets", "gguf": "GGUF files", "table": "its own speech models"}

// suits says what is wrong with a source that could be read: it is not what the
// field is for, or nothing that the backend serves, if one is to be asked.
func suits(o *v1alpha1.ModelSource, m *estimate.Model, b *backend.Backend) error {
	switch {
	case o.GGUF != "" && m.Format != "gguf":
		return fmt.Errorf("%s is no GGUF file; write a directory with config.json under huggingFace", o.GGUF)
	case o.HuggingFace != "" && m.Format != "safetensors":
		return fmt.Errorf("%s is no directory with a config.json; write a GGUF file under gguf", o.HuggingFace)
	case b == nil || len(b.Formats) == 0 || slices.Contains(b.Formats, m.Format):
		return nil
	}
	var serves []string
	for _, f := range b.Formats {
		serves = append(serves, formats[f])
	}
	return fmt.Errorf("%s serves %s, and %s is none; name another backend, or say how much memory it needs under memory", b.Name, phrase.Either(serves), m.Name)
}

func missingFile(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// presetOf names the preset that stands for a repository; "": none does.
func presetOf(repository string) string {
	m, err := library.Known(repository)
	if err != nil || m.Format != "preset" {
		return ""
	}
	return fmt.Sprintf("; without one, preset: %s is this model", m.Name)
}
