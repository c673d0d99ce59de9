package backend

import (
	"fmt"

	"github.com/berth-project/berth/internal/estimate"
)

// WithDefaults returns s with the defaults of the backend in place of zero fields.
func (b *Backend) WithDefaults(s estimate.Serving) estimate.Serving {
	if s.BatchTokens == 0 {
		s.BatchTokens = b.BatchTokens
	}
	if s.Rows == 0 {
		s.Rows = b.Rows
	}
	if s.WindowFloor == 0 {
		s.WindowFloor = b.WindowFloor
	}
	if s.VocabMultiple == 0 {
		s.VocabMultiple = b.VocabMultiple
	}
	if s.Graph == 0 {
		s.Graph = b.Graph
	}
	if s.Overhead == 0 {
		s.Overhead = b.Overhead
	}
	return s
}

// CheckTensor returns an error that says why the backend cannot serve the model at this
// tensor parallelism; nil: it can.
func (b *Backend) CheckTensor(m *estimate.Model, tensor int) error {
	if b.PowersOfTwo && tensor&(tensor-1) != 0 {
		return fmt.Errorf("%s divides over 1, 2, 4, 8, … devices, not over %d", b.Name, tensor)
	}
	if m.Architecture == nil {
		return nil
	}
	return m.CheckTensor(b.WithDefaults(estimate.Serving{Tensor: tensor}))
}

// TensorSizes returns the sizes of tensor parallelism, up to most, at which the backend
// can serve the model. If the architecture is not known, only 1 is returned.
func (b *Backend) TensorSizes(m *estimate.Model, most int) []int {
	out := []int{1}
	for n := 2; n <= most; n++ {
		if m.Architecture != nil && b.CheckTensor(m, n) == nil {
			out = append(out, n)
		}
	}
	return out
}
