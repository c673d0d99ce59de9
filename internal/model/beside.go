package model

import "github.com/berth-project/berth/cluster"

// Beside returns the bytes that the draft model and the adapters take of each device at
// this tensor parallelism.
func (s *Spec) Beside(tensor int) (cluster.Bytes, error) {
	if s.Draft == nil {
		return s.Adapters, nil
	}
	b, err := sizing{s}.draftNeed(tensor)
	return s.Adapters + b.Weights + b.KVCache + b.Activations, err
}
