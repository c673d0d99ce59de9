package cluster

import "slices"

// Queues remember what they used. Reported use is where they start from; from then
// on a queue is charged, from one session to the next, with what it holds when the
// next one opens. While that stays the same, nothing is written down. A queue that
// has others below it and reports nothing has the past of those.

// maxPast is how many intervals a queue remembers; the oldest are put together.
const maxPastIntervals = 64

// held is what a queue has used since a time, without a change.
type currentUse struct {
	since int64
	used  Resources
}

// pass moves the clock.
func (tr *tree) pass(now int64) {
	was, passed := tr.now, tr.passedVersion
	from := was
	if was == 0 {
		from = now // nothing is known of the time before the first session but what was reported
	}
	var changed []*Queue
	var before []Queue
	tr.slots.since(tr.passedVersion, func(slot int) {
		if q := tr.slots.at[slot]; q != nil && (q.Leaf() || len(q.Past) > 0) && !slices.Equal(q.Used, q.current.used) {
			changed, before = append(changed, q), append(before, Queue{Past: q.Past, current: q.current})
			q.closeInterval(from)
		}
	})
	tr.passedVersion = tr.slots.version
	tr.now = now
	if tr.journal.recording() {
		tr.journal.cold(func() {
			tr.now, tr.passedVersion = was, min(passed, tr.passedVersion)
			for i, q := range changed {
				q.Past, q.current = before[i].Past, before[i].current
			}
		})
	}
}

// close ends the interval in which the queue held the same, and begins the next.
func (q *Queue) closeInterval(at int64) {
	if len(q.current.used) > 0 && q.current.since < at {
		q.Past = append(slices.Clip(q.Past), Usage{q.current.since, at, q.current.used})
		if len(q.Past) > maxPastIntervals {
			q.Past = slices.Insert(slices.Clone(q.Past[2:]), 0, q.Past[0].mergedWith(&q.Past[1]))
		}
	}
	q.current = currentUse{at, slices.Clone(q.Used)}
}

// with is the average of two intervals.
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
