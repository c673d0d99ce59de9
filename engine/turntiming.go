package engine

// TurnTiming is how long one turn of a job took.
type TurnTiming struct {
	Job        string
	Start, End int64    // by Timings.Clock
	Decisions  int      // how many decisions the turn made; 0: the job was refused
	Hooks      []Timing // that were called in the turn, the longest time first
}

// Turns returns the turns that were measured, in their order. It is empty unless PerTurn is
// set.
func (t *Timings) Turns() []TurnTiming { return t.turns }

// beginTurn begins to measure the turn of a job. The function that it returns ends that.
func (t *Timings) beginTurn(job string) (end func(decisions int)) {
	before := make(map[[2]string]timer, len(t.timers))
	for key, m := range t.timers {
		before[key] = *m
	}
	start := t.Clock()
	return func(decisions int) {
		t.turns = append(t.turns, TurnTiming{Job: job, Start: start, End: t.Clock(), Decisions: decisions, Hooks: t.since(before)})
	}
}
