package estimate

import (
	"cmp"
	"fmt"
)

// CheckTensor returns an error that says why the model cannot be divided with the tensor
// parallelism of s; nil: it can. The attention heads, the padded vocabulary and the width
// of the MLPs must be divisible by it, and so must the heads of a vision encoder. The number of key heads must be divisible by it or
// divide it, so that every key head is on equally many devices. Each device must hold
// whole blocks of quantised weights.
func (m *Model) CheckTensor(s Serving) error {
	a, block, tensor := m.Architecture, m.Weights.Block, cmp.Or(s.Tensor, 1)
	switch {
	case tensor == 1:
		return nil
	case a.Heads%tensor != 0:
		return fmt.Errorf("the %d attention heads of model %s do not divide over %d devices", a.Heads, m.Name, tensor)
	case a.Latent == nil && a.KVHeads%tensor != 0 && tensor%max(1, a.KVHeads) != 0:
		return fmt.Errorf("the %d key heads of model %s do not divide over %d devices, nor the devices over them", a.KVHeads, m.Name, tensor)
	case a.paddedVocabulary(s)%tensor != 0:
		return fmt.Errorf("the vocabulary of model %s, %d, does not divide over %d devices", m.Name, a.Vocab, tensor)
	case a.Vision != nil && a.Vision.Heads%tensor != 0:
		return fmt.Errorf("the %d attention heads of the vision encoder of model %s do not divide over %d devices", a.Vision.Heads, m.Name, tensor)
	case a.Width%tensor != 0:
		return fmt.Errorf("%s of model %s, %d wide, do not divide over %d devices", a.mlpName(), m.Name, a.Width, tensor)
	case block > 0 && a.Width/tensor%block != 0:
		return fmt.Errorf("%s of model %s, %d wide, come to %d on each of %d devices, which is not a multiple of the block size %d", a.mlpName(), m.Name, a.Width, a.Width/tensor, tensor, block)
	}
	return nil
}

// paddedVocabulary returns the size of the vocabulary with its padding.
func (a *Architecture) paddedVocabulary(s Serving) int {
	multiple := cmp.Or(s.VocabMultiple, 1)
	return (a.Vocab + multiple - 1) / multiple * multiple
}

func (a *Architecture) mlpName() string {
	if a.Experts > 0 {
		return "the experts"
	}
	return "the MLPs"
}
