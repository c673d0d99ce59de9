// Package cluster holds the nouns of scheduling: nodes and their devices,
// queues, jobs, tasks, the shapes tasks come in, and State, the books that say
// who holds what.
//
// It keeps the books and refuses to know why: no policy lives here, no clock,
// no input or output. Everything may be read directly; only State's methods may
// change it, because they also keep ledgers and versions in step.
package cluster
