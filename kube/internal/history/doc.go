// Package history keeps the input of the last sessions of a scheduler: the State and the objects
// that the filters of Kubernetes read, as they were when each session was opened.
//
//	State, objects (base) ──▶ change, change, session 17, change, …, session 36, change
//
// It copies neither for a session. It has one State and one set of objects of its own, which are
// as old as the oldest session that it keeps, and the changes since. The loop of the scheduler
// only appends to a list. A goroutine that is started after many changes applies those that no
// kept session needs; readers apply the changes up to a session to a copy.
package history
