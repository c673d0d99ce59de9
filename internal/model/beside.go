package model

import "github.com/berth-project/berth/cluster"

// Beside is what a draft and adapters take of each device, where the model is
// divided so.
func (s *Spec) Beside(tensor int) (cluster.Bytes, error) {
	if s.Draft == nil {
		return s.Adapters, nil
	}
	b, err := sizing{s}.draft(tensor)
	return s.Adapters + b.Weights + b.KVCache + b.Activations, err
}
