package fillvalue

import "math"

// early is what a step of a sequence counts if tasks end, in parts of unit: e^(-step ÷ earlySteps).
// It is computed once and rounded, so that all machines agree.
var early = func() (out [sequenceLength]int64) {
	for i := range out {
		out[i] = int64(math.Round(unit * math.Exp(-float64(i)/earlySteps)))
	}
	return out
}()

// earlySteps is the number of steps after which a step counts 1 ÷ e.
const earlySteps = 12

// fillWith returns the fill value of the room if a task ends with the probability release, which is in
// parts of certain. If tasks end, room is free for a limited time: a part of a device is lost when the
// task beside it ends and no request has fitted until then. So the later a request fits, the less
// it counts, up to a release of one quarter, from which on only early counts.
func (w *workload) fillWith(r *room, release int64) int64 {
	all := w.fill(r)
	return all - (all-r.early)*min(4*release, certain)/certain
}
