package soak

import (
	"maps"

	"github.com/berth-project/berth/cluster"
)

// history is what checks remember from one session to the next. It is emptied when the
// scheduler starts again, because a new scheduler does not know it either.
type history struct {
	// belowMinimum maps the gangs that run below their minimum because of reported
	// facts to the time of the first session that found them so, or 0 if none has.
	belowMinimum map[string]int64
	displaced    map[displacement]bool
}

// displacement is a pair of jobs: tasks of victim were evicted for job.
type displacement struct{ job, victim string }

// restart empties the history. The gangs that run below their minimum in the State of
// the new scheduler are the first entries.
func (h *history) restart(state *cluster.State) {
	h.displaced, h.belowMinimum = map[displacement]bool{}, map[string]int64{}
	h.updateGangs(state)
}

// updateGangs updates the gangs that run below their minimum. It is called after facts
// were reported and before the next session, so that checks can tell these gangs from
// gangs that a session left below their minimum.
func (h *history) updateGangs(state *cluster.State) {
	for _, j := range state.Jobs() {
		if !j.Running() || j.HasMinimum() {
			delete(h.belowMinimum, j.ID)
		} else {
			h.addGang(j.ID)
		}
	}
}

// addGang adds a gang that is below its minimum, unless it is known.
func (h *history) addGang(job string) {
	if _, known := h.belowMinimum[job]; !known {
		h.belowMinimum[job] = 0
	}
}

// forgetGang removes a gang that ended or that was restarted.
func (h *history) forgetGang(job string) { delete(h.belowMinimum, job) }

// forgetVictim removes the displacements of a job of which an eviction was refused. It
// may be evicted for the same jobs again.
func (h *history) forgetVictim(job string) {
	maps.DeleteFunc(h.displaced, func(d displacement, _ bool) bool { return d.victim == job })
}
