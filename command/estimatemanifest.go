package command

import (
	"cmp"
	"fmt"

	"github.com/berth-project/berth/internal/estimate/backend"
	"github.com/berth-project/berth/internal/estimate/fit"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/internal/quantity"
)

// estimateManifest answers for each model of a file, as it is written there.
func (p *program) estimateManifest(file string, q *question) error {
	specs, err := manifest.Models(file)
	if err != nil {
		return err
	}
	rows, err := p.rows(q)
	if err != nil {
		return err
	}
	var views []*estimateView
	for _, s := range specs {
		v, err := q.specView(s)
		if err == nil {
			err = rows(v)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.ID, err)
		}
		views = append(views, v)
	}
	return p.writeEstimates(q, views, views...)
}

// specView is the answer for a model of a manifest, without any device yet.
func (q *question) specView(s *model.Spec) (*estimateView, error) {
	if s.Source == nil {
		return nil, fmt.Errorf("it has no source to be read, so there is nothing to estimate; what it needs is what its spec says under memory")
	}
	if err := q.apply(s); err != nil {
		return nil, err
	}
	v, err := newEstimateView(s.Source, s.Backend, s.Serve, fit.Terms{Share: s.Utilization, Beside: s.Beside})
	if err != nil {
		return nil, err
	}
	v.Name, v.loaded = s.ID, s.Adapters
	if s.Draft != nil {
		v.loaded += s.Draft.Published()
		v.assume("A draft, " + s.Draft.Name + ", lies beside the model; what it takes is not offered to it.")
	}
	if s.Utilization > 0 {
		v.assume(fmt.Sprintf("%s claims %d %% of each device, as the spec says.", s.Backend.Name, s.Utilization/10))
	}
	switch {
	case s.Memory.Device > 0:
		v.assume("When it is placed, each device has to give " + quantity.Memory(s.Memory.Device) + ", as the spec says; this is what would be estimated.")
	case s.Memory.Total > 0:
		v.assume("When it is placed, its devices have to give " + quantity.Memory(s.Memory.Total) + " together, as the spec says; this is what would be estimated.")
	}
	return v, nil
}

// apply lets flags that were given take the place of what the spec says.
func (q *question) apply(s *model.Spec) error {
	for flag, change := range map[string]func(){
		"context":   func() { s.Serve.Context = q.form.Context },
		"sequences": func() { s.Serve.Sequences = q.form.Sequences },
		"kv-bits":   func() { s.Serve.KVBits = q.form.KVBits },
		"tp":        func() { s.Serve.Tensor = q.form.Tensor },
		"pp":        func() { s.Serve.Pipeline = q.form.Pipeline },
	} {
		if q.given(flag) {
			change()
		}
	}
	s.Serve.Sequences, s.Serve.KVBits = cmp.Or(s.Serve.Sequences, 1), cmp.Or(s.Serve.KVBits, 16)
	if q.backend == "" {
		return nil
	}
	b, err := backend.Find(q.backend)
	if err == nil {
		s.Backend = b
	}
	return err
}

// writeEstimates prints the answers one below the other, or as data.
func (p *program) writeEstimates(q *question, data any, views ...*estimateView) error {
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
		v.table(p)
	}
	return nil
}
