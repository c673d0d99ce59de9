// Package modelsource turns Models of the API server into specs of package model: it converts the
// objects, and finds the models that they name. Nothing is pulled from a network.
package modelsource

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/hf"
	"github.com/berth-project/berth/internal/estimate/library"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/internal/field"
	"github.com/berth-project/berth/internal/model"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is the kind Model.
var Kind = schema.GroupKind{Group: v1alpha1.Group, Kind: v1alpha1.KindModel}

// Decode returns the model that the fields of an object are.
func Decode(fields any) (*v1alpha1.Model, error) {
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	m := &v1alpha1.Model{}
	return m, json.Unmarshal(text, m)
}

// Reader reads Models of a cluster.
type Reader struct {
	Feed           *feed.Feed // has taken in the namespaces and queues of the cluster
	SchedulerNames []string   // of the pods that Berth places
	Profiles       bool       // each scheduler name is the name of a profile
	// Directory has the files of models that specs name by a relative path; "": there is none.
	Directory string
	// NoDirectory says how a program is given a directory. It completes a sentence such as
	// "weights.gguf cannot be read, because …".
	NoDirectory string
}

// InvalidError says what is wrong with a model.
type InvalidError struct{ Problems []string }

func (e *InvalidError) Error() string { return strings.Join(e.Problems, "; ") }

// Spec returns what the model asks for, with its source. The replicas in its status are not read.
// An error is an *InvalidError, and lists all that is wrong.
func (r *Reader) Spec(o *v1alpha1.Model) (*model.Spec, error) {
	own := *o
	if own.Spec.Queue == "" {
		own.Spec.Queue = feed.DefaultQueue(r.Feed, o.Namespace)
	}
	if own.Spec.SchedulerName == "" && r.Profiles {
		own.Spec.SchedulerName = r.SchedulerNames[0]
	}
	own.Status.Replicas = nil
	s, notes := convert.Model(&own, feed.EnvironmentOf(r.Feed))
	var wrong []string
	for _, n := range notes {
		if n.Severity == convert.Invalid {
			wrong = append(wrong, n.Path.String()+": "+n.Message)
		}
	}
	if name := own.Spec.SchedulerName; len(wrong) == 0 && name != "" && !slices.Contains(r.SchedulerNames, name) {
		wrong = append(wrong, fmt.Sprintf("spec.schedulerName: Berth places pods with %s, and not with %s", strings.Join(r.SchedulerNames, ", "), name))
	}
	if len(wrong) == 0 {
		wrong = r.open(s, &own)
	}
	if len(wrong) > 0 {
		return nil, &InvalidError{wrong}
	}
	return s, nil
}

// open sets the source, the draft and the adapters of the spec, and returns what is wrong.
func (r *Reader) open(s *model.Spec, o *v1alpha1.Model) []string {
	known := s.Memory.Device > 0 || s.Memory.Total > 0
	var wrong []string
	open := func(src *v1alpha1.ModelSource, at string) *estimate.Model {
		m, err := r.source(src)
		if err == nil && m != nil && !known && at == "source" {
			if format := s.Backend.CheckFormat(m); format != nil {
				err = fmt.Errorf("%w; name another backend, or say how much memory it needs under memory", format)
			}
		}
		if err != nil && !(known && src.Preset == "") {
			wrong = append(wrong, fmt.Sprintf("spec.%s: %s", at, err))
		}
		if err != nil {
			return nil
		}
		return m
	}
	s.Source = open(&o.Spec.Source, "source")
	if o.Spec.Draft != nil {
		s.Draft = open(o.Spec.Draft, "draft")
	}
	for i, a := range o.Spec.Adapters {
		if a.Path == "" {
			continue
		}
		path, err := r.path(a.Path)
		if err == nil {
			bytes, failed := hf.ReadAdapter(path)
			s.Adapters, err = s.Adapters+bytes, failed
		}
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("spec.adapters[%d]: %s; or say how much memory it takes under memory", i, err))
		}
	}
	return wrong
}

// source returns the model of the source; nil if none is named.
func (r *Reader) source(o *v1alpha1.ModelSource) (*estimate.Model, error) {
	if o.Preset != "" {
		return library.Known(o.Preset)
	}
	if weights, known := convert.ConfigWeights(o); o.Config != "" && known {
		return hf.Parse(cmp.Or(o.Repository, "the model"), o.Config, weights)
	}
	for _, name := range []string{o.GGUF, o.HuggingFace, o.LocalPath} {
		if name == "" {
			continue
		}
		path, err := r.path(name)
		if err != nil {
			return nil, err
		}
		m, err := library.Open(path)
		if err != nil {
			return nil, fmt.Errorf("%s cannot be read in the directory of models: %w", name, err)
		}
		return m, nil
	}
	return nil, nil
}

// path returns the path of a file in the directory of models.
func (r *Reader) path(name string) (string, error) {
	switch {
	case r.Directory == "":
		return "", fmt.Errorf("%s cannot be read, because %s; name a preset, write the config.json under source.config, or say how much memory it needs under memory", name, r.NoDirectory)
	case !filepath.IsLocal(name):
		return "", fmt.Errorf("%s is not below the directory of models; write a path that is relative to it", name)
	}
	return filepath.Join(r.Directory, name), nil
}

// ProblemText returns the message of an error about a model.
func ProblemText(err error) string {
	if p, is := err.(*model.Problem); is {
		return field.Path(p.Field).String() + ": " + p.Message
	}
	return err.Error()
}
