package cluster

import "slices"

// Each queue keeps a record of its past use, which begins with the use that was
// reported for it. After that, the use of a queue is read when a session opens, and
// counts for the time since the session before. While the use stays the same, nothing
// is recorded. A queue that has queues below it and no reported use has no record of its
// own: its past is that of the queues below it.

// maxPastIntervals is how many intervals a queue keeps. Beyond that, the two oldest are
// merged into one.
const maxPastIntervals = 64

// currentUse is what a queue has used, without a change, since a time in nanoseconds.
type currentUse struct {
	since int64
	used  Resources
}

// advance sets the clock to the time at which a session opens, and records the use of the
// queues that changed since the last call.
func (tr *tree) advance(now int64) {
	was, passed := tr.now, tr.advancedVersion
	from := was
	if was == 0 {
		from = now // of the time before the first session, only the reported use is known
	}
	var changed []*Queue
	var before []Queue
	recording := tr.journal.recording()
	tr.slots.Since(tr.advancedVersion, func(slot int) {
		if q := tr.slots.table.At(slot); q != nil && (q.Leaf() || len(q.Past) > 0) && !slices.Equal(q.Used, q.current.used) {
			if recording {
				changed, before = append(changed, q), append(before, Queue{Past: q.Past, current: q.current})
				q.Past = slices.Clone(q.Past) // closeInterval changes it in place
			}
			q.closeInterval(from)
		}
	})
	tr.advancedVersion = tr.slots.Version
	tr.now = now
	if recording {
		tr.journal.recordUndo(func() {
			tr.now, tr.advancedVersion = was, min(passed, tr.advancedVersion)
			for i, q := range changed {
				q.Past, q.current = before[i].Past, before[i].current
			}
		})
	}
}

// closeInterval ends the interval in which the use of the queue stayed the same, and
// begins the next one. It changes Past in place.
func (q *Queue) closeInterval(at int64) {
	if len(q.current.used) > 0 && q.current.since < at {
		if len(q.Past) >= maxPastIntervals {
			q.Past[1] = q.Past[0].mergedWith(&q.Past[1])
			q.Past = q.Past[1:]
		}
		q.Past = append(q.Past, Usage{q.current.since, at, q.current.used})
	}
	q.current = currentUse{at, slices.Clone(q.Used)}
}

// mergedWith returns one interval that spans both, with their average use.
func (u *Usage) mergedWith(o *Usage) Usage {
	out := Usage{From: min(u.From, o.From), To: max(u.To, o.To)}
	span := max(1, out.To-out.From)
	for _, part := range [2]*Usage{u, o} {
		for _, a := range part.Resources {
			out.Resources = out.Resources.plus(a.Name, MulDiv(a.Value, max(0, part.To-part.From), span))
		}
	}
	return out
}
