package backend

import (
	"fmt"

	"github.com/berth-project/berth/internal/estimate"
)

// CheckTensor returns an error that says why the backend cannot serve the model at this
// tensor parallelism; nil: it can.
func (b *Backend) CheckTensor(m *estimate.Model, tensor int) error {
	if b.PowersOfTwo && tensor&(tensor-1) != 0 {
		return fmt.Errorf("%s divides over 1, 2, 4, 8, … devices, not over %d", b.Name, tensor)
	}
	if m.Architecture == nil {
		return nil
	}
	return m.CheckTensor(estimate.Serving{Tensor: tensor, VocabMultiple: b.VocabMultiple})
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
