package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/backend"
	"github.com/berth-project/berth/internal/estimate/hf"
	"github.com/berth-project/berth/internal/estimate/library"
	"github.com/berth-project/berth/internal/model"
)

// sources reads the files of the model and reports whether it could. If the memory is
// given in the manifest, files may be missing.
func (m *stateMaker) sources(s *model.Spec, o *v1alpha1.Model, r reporter) bool {
	known := s.Memory.Device > 0 || s.Memory.Total > 0
	served := s.Backend
	if known {
		served = nil // with given memory, the format of the source does not matter
	}
	ok := true
	open := func(src *v1alpha1.ModelSource, at path, by *backend.Backend) *estimate.Model {
		if src.Config != "" {
			found, err := parseConfig(src, o.Name, by)
			if err != nil {
				r.errorf(at.Add("config"), "%s", err)
				ok = false
			}
			return found
		}
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
			err = checkFormat(src, found, by)
		}
		switch {
		case err == nil:
			return found
		case !read && known && src.Preset == "":
			return nil // the memory is given
		case src.HuggingFace != "" && missingFile(name):
			r.errorf(at, "%s; huggingFace is the path of a directory that was downloaded%s", err, presetOf(src.HuggingFace))
		case local && !read:
			r.errorf(at, "%s; if it is on the nodes only, say how much memory it needs under memory", err)
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
		bytes, err := hf.ReadAdapter(fromManifest(a.Path, r))
		if err != nil {
			r.errorf(path{"spec", "adapters", i}, "%s", err)
			ok = false
		}
		s.Adapters += bytes
	}
	return ok
}

// parseConfig returns the model that the config of the source describes. A source without
// a repository has the name of the Model. A size of the weights that is missing or wrong is
// reported by package convert, and then there is no model.
func parseConfig(o *v1alpha1.ModelSource, name string, b *backend.Backend) (*estimate.Model, error) {
	weights, ok := convert.ConfigWeights(o)
	if !ok {
		return nil, nil
	}
	m, err := hf.Parse(cmp.Or(o.Repository, name), o.Config, weights)
	if err == nil {
		err = checkFormat(o, m, b)
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// sourceName returns the name by which the library finds the source, and whether the
// files may exist on the nodes only.
func sourceName(o *v1alpha1.ModelSource, r reporter) (name string, local bool) {
	switch {
	case o.Preset != "":
		return o.Preset, false
	case o.GGUF != "":
		return fromManifest(o.GGUF, r), false
	case o.HuggingFace != "":
		return fromManifest(o.HuggingFace, r), false
	}
	if o.LocalPath != "" {
		return fromManifest(o.LocalPath, r), true
	}
	return "", false
}

// fromManifest returns a path that is relative to the directory of the manifest. The
// result begins with / or ./, so that the library does not take it for the name of a
// preset.
func fromManifest(name string, r reporter) string {
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

// checkFormat returns an error if the source, which could be read, has another format
// than its field is for, or one that the backend does not serve. A nil backend serves all.
func checkFormat(o *v1alpha1.ModelSource, m *estimate.Model, b *backend.Backend) error {
	switch {
	case o.GGUF != "" && m.Format != "gguf":
		return fmt.Errorf("%s is not a GGUF file; write a directory with config.json under huggingFace", o.GGUF)
	case o.HuggingFace != "" && m.Format != "safetensors":
		return fmt.Errorf("%s is not a directory with a config.json; write a GGUF file under gguf", o.HuggingFace)
	case b == nil:
		return nil
	}
	if err := b.CheckFormat(m); err != nil {
		return fmt.Errorf("%w; name another backend, or say how much memory it needs under memory", err)
	}
	return nil
}

// HasModelFiles reports whether the source of the model is files, and they exist on this
// machine.
func HasModelFiles(b *Bundle, o *v1alpha1.Model) bool {
	if o.Spec.Source.Preset != "" {
		return false
	}
	name, _ := sourceName(&o.Spec.Source, b.reporter(o, &Errors{}))
	return name != "" && !missingFile(name)
}

func missingFile(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// presetOf returns the end of a message that names the preset for a repository, "" if
// there is none.
func presetOf(repository string) string {
	m, err := library.Known(repository)
	if err != nil || m.Format != "preset" {
		return ""
	}
	return fmt.Sprintf("; without one, preset: %s is this model", m.Name)
}
