package backend

import (
	"fmt"

	"github.com/berth-project/berth/internal/estimate"
)

// Form returns f with its zero fields set to the values of the backend.
func (b *Backend) Form(f estimate.Form) estimate.Form {
	if f.BatchTokens == 0 {
		f.BatchTokens = b.BatchTokens
	}
	if f.Rows == 0 {
		f.Rows = b.Rows
	}
	if f.WindowFloor == 0 {
		f.WindowFloor = b.WindowFloor
	}
	if f.VocabMultiple == 0 {
		f.VocabMultiple = b.VocabMultiple
	}
	if f.Graph == 0 {
		f.Graph = b.Graph
	}
	if f.Overhead == 0 {
		f.Overhead = b.Overhead
	}
	return f
}

// Divides returns an error that says why the backend cannot serve the model at this
// tensor parallelism; nil: it can.
func (b *Backend) Divides(m *estimate.Model, tensor int) error {
	if b.PowersOfTwo && tensor&(tensor-1) != 0 {
		return fmt.Errorf("%s divides over 1, 2, 4, 8, … devices, not over %d", b.Name, tensor)
	}
	if m.Architecture == nil {
		return nil
	}
	return m.Splits(b.Form(estimate.Form{Tensor: tensor}))
}

// Sizes returns the sizes of tensor parallelism, up to most, at which the backend can
// serve the model. If the architecture is not known, only 1 is returned.
func (b *Backend) Sizes(m *estimate.Model, most int) []int {
	out := []int{1}
	for n := 2; n <= most; n++ {
		if m.Architecture != nil && b.Divides(m, n) == nil {
			out = append(out, n)
		}
	}
	return out
}
