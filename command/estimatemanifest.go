package command

import (
	"cmp"
	"fmt"

	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/backend"
	"github.com/berth-project/berth/internal/estimate/fit"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/internal/quantity"
)

// estimateManifest estimates each model of a manifest, with the settings that the
// manifest has for it. rows is called after the manifest was read.
func (p *program) estimateManifest(file string, q *estimateOptions, rows func() (rowAdder, error)) error {
	end := p.showReading(file)
	specs, err := manifest.Models(file)
	end()
	if err != nil {
		return err
	}
	addRows, err := rows()
	if err != nil {
		return err
	}
	var views []*estimateView
	for _, s := range specs {
		v, err := q.specViewOn(s, addRows)
		if err != nil {
			return err
		}
		views = append(views, v)
	}
	return p.writeEstimates(q, views, views...)
}

// specViewOn returns the view of a model of a manifest, with its rows.
func (q *estimateOptions) specViewOn(s *model.Spec, addRows rowAdder) (*estimateView, error) {
	v, err := withContext(s.Source, s.Serving.Context, addRows, func(context int) (*estimateView, error) {
		own := *s
		own.Serving.Context = context
		return q.specView(&own)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.ID, err)
	}
	return v, nil
}

// specView returns the view of a model of a manifest, without rows for devices.
func (q *estimateOptions) specView(s *model.Spec) (*estimateView, error) {
	if s.Source == nil {
		return nil, fmt.Errorf("the model has no source that can be read, so nothing can be estimated; its needs are those that its spec has under memory")
	}
	if err := q.apply(s); err != nil {
		return nil, err
	}
	v, err := newEstimateView(s.Source, s.Backend, s.Serving, fit.Options{Share: s.Utilization, Extra: s.DraftAndAdapters})
	if err != nil {
		return nil, err
	}
	v.Name, v.loaded, v.version, v.oneNode = s.ID, s.Adapters, s.Version, !s.Place.Distributed
	if s.Draft != nil {
		v.loaded += s.Draft.PublishedSize()
		v.assume("The draft model " + s.Draft.Name + " is loaded on the same devices; its memory is not available to the model.")
	}
	if s.Utilization > 0 {
		v.assume(fmt.Sprintf("%s claims %d %% of each device, as the spec requests.", s.Backend.Name, s.Utilization/10))
	}
	switch {
	case s.Memory.Device > 0:
		v.assume("The spec requests " + quantity.Memory(s.Memory.Device) + " of each device, and the model is placed by that; this is the estimate without it.")
	case s.Memory.Total > 0:
		v.assume("The spec requests " + quantity.Memory(s.Memory.Total) + " of all devices together, and the model is placed by that; this is the estimate without it.")
	}
	return v, nil
}

// apply overwrites the settings of the spec with the flags on the command line.
func (q *estimateOptions) apply(s *model.Spec) error {
	for flag, change := range map[string]func(){
		q.contextFlag:     func() { s.Serving.Context = q.form.Context },
		"sequences":       func() { s.Serving.Sequences = q.form.Sequences },
		"kv-bits":         func() { s.Serving.KVBits = q.form.KVBits },
		"tp":              func() { s.Serving.Tensor = q.form.Tensor },
		"pp":              func() { s.Serving.Pipeline = q.form.Pipeline },
		"batch-tokens":    func() { s.Serving.BatchTokens = q.form.BatchTokens },
		"max-sequences":   func() { s.Serving.Rows = q.form.Rows },
		"eager":           func() { s.Serving.Eager = q.form.Eager },
		"dtype":           func() { s.DType = q.dtype },
		"quantization":    func() { s.Quantization = q.quantization },
		"dp":              func() { s.Serving.Data = q.form.Data },
		"expert-parallel": func() { s.Serving.Expert = q.form.Expert },
		"backend-version": func() { s.Version = q.version },

		"micro-batch":       func() { s.Serving.MicroBatch = q.form.MicroBatch },
		"flash-attention":   func() { s.Serving.NoFlashAttention = q.form.NoFlashAttention },
		"full-window-cache": func() { s.Serving.FullWindowCache = q.form.FullWindowCache },
	} {
		if q.given(flag) {
			change()
		}
	}
	bits, problem := estimate.WeightBits(s.DType, s.Quantization)
	if problem != nil {
		return fmt.Errorf("--%s: %w", problem.Field, problem)
	}
	s.Serving.WeightBits = bits
	b := s.Backend
	if q.backend != "" {
		var err error
		if b, err = backend.Find(q.backend); err != nil {
			return err
		}
	}
	b, err := b.At(s.Version)
	if err != nil {
		return err
	}
	s.Backend = b
	if !isLayered(s.Source, s.Backend) { // otherwise the server has a default
		s.Serving.Sequences = cmp.Or(s.Serving.Sequences, 1)
	}
	if q.backend != "" { // otherwise the format was checked when the manifest was read
		if err := checkFormat(s.Backend, s.Source); err != nil {
			return err
		}
	}
	return q.checkSettings(s.Backend, s.Source, s.Serving)
}

// writeEstimates prints the views as tables, or data as JSON or YAML.
func (p *program) writeEstimates(q *estimateOptions, data any, views ...*estimateView) error {
	switch q.output {
	case "json":
		return writeJSON(p.stdout, data)
	case "yaml":
		return writeYAML(p.stdout, data)
	}
	for i, v := range views {
		if i > 0 {
			fmt.Fprintln(p.stdout)
		}
		v.table(p, q.output == "wide")
	}
	return nil
}
