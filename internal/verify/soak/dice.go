package soak

import "math/rand/v2"

// dice is the random source of a simulation. All parts share one. Every step has a
// source of its own, made from the seed and the number of the step, so that a step
// draws the same numbers if other steps are left out.
type dice struct {
	source *rand.Rand
	seed   uint64
	step   int // 0 until the first cluster is made, then the number of the step
}

func newDice(seed uint64) *dice {
	d := &dice{seed: seed}
	d.startStep(0)
	return d
}

// startStep replaces the source by that of the given step.
func (d *dice) startStep(step int) {
	d.step, d.source = step, rand.New(rand.NewPCG(d.seed, uint64(step)))
}

// roll returns a number from 0 to n-1.
func (d *dice) roll(n int) int { return d.source.IntN(n) }

// chance returns true with the given probability in percent.
func (d *dice) chance(percent int) bool { return d.roll(100) < percent }

// pick returns a random element of the list, which must not be empty.
func pick[T any](d *dice, list []T) T { return list[d.roll(len(list))] }
