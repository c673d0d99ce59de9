package model

import "github.com/berth-project/berth/cluster"

// Beside is what a draft and adapters take of each device, where the model is
// divided so.
func (s *Spec) Beside(tensor int) (cluster.Bytes, error) {
	p := &planner{Spec: s}
	if s.Draft == nil {
		return s.Adapters, nil
	}
	if p.layered() {
		draft, err := p.draftBeside()
		return s.Adapters + draft, err
	}
	b, err := p.parts(s.Draft, p.draftTensor(tensor), 1)
	return s.Adapters + b.Weights + b.KVCache + b.Activations, err
}
