// Package cluster holds the nouns of scheduling (nodes and their devices, queues,
// jobs, tasks, the shapes tasks come in) and State, which knows all of them and
// which task holds what.
//
// State is a deterministic state machine over a log of changes. There are two ways
// to change it: Apply makes a Change, a fact or decisions, and a Transaction makes
// decisions that can be taken back. Both keep ledgers, lists, versions and the
// journal in step. Everything may be read directly.
//
// The package knows no policy, no clock, no input or output.
package cluster
