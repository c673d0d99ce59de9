package estimate

import "fmt"

// Splits says why the model cannot be divided as the form has it; nil: it can. Key
// heads are divided too, or else each is on as many devices as any other.
func (m *Model) Splits(f Form) error {
	a, block, tensor := m.Architecture, m.Weights.Block, orElse(f.Tensor, 1)
	switch {
	case tensor == 1:
		return nil
	case a.Heads%tensor != 0:
		return fmt.Errorf("the %d attention heads of model %s do not divide over %d devices", a.Heads, m.Name, tensor)
	case a.Latent == nil && a.KVHeads%tensor != 0 && tensor%max(1, a.KVHeads) != 0:
		return fmt.Errorf("the %d key heads of model %s do not divide over %d devices, nor the devices over them", a.KVHeads, m.Name, tensor)
	case a.vocabulary(f)%tensor != 0:
		return fmt.Errorf("the vocabulary of model %s, %d, does not divide over %d devices", m.Name, a.Vocab, tensor)
	case a.Width%tensor != 0:
		return fmt.Errorf("%s of model %s, %d wide, do not divide over %d devices", a.mlps(), m.Name, a.Width, tensor)
	case block > 0 && a.Width/tensor%block != 0:
		return fmt.Errorf("%s of model %s, %d wide, come to %d on each of %d devices, and that is not a multiple of %d, which have one scale", a.mlps(), m.Name, a.Width, a.Width/tensor, tensor, block)
	}
	return nil
}

// vocabulary is its size once it is filled up.
func (a *Architecture) vocabulary(f Form) int {
	multiple := orElse(f.VocabMultiple, 1)
	return (a.Vocab + multiple - 1) / multiple * multiple
}

func (a *Architecture) mlps() string {
	if a.Experts > 0 {
		return "the experts"
	}
	return "the MLPs"
}
