// Package cluster holds the nouns of scheduling (nodes and their devices, queues,
// jobs, tasks, the shapes tasks come in) and State, which knows all of them and
// which task holds what.
//
// State is a deterministic state machine over a log of changes. There are two ways
// to change it: Apply makes a Change, a fact or decisions, and a Transaction makes
// decisions that can be taken back. Both keep ledgers, lists, versions and the
// journal in step. Everything may be read directly.
//
// State is made of tables. Each owns what it lists: fleet has the nodes, roster the
// jobs and tasks, tree the queues and budgets, classes the preemptible tasks that
// run, sets the sets of replicas, shapes the interned shapes, and journal how to undo
// changes. What changes several tables is a type of its own, which has the tables that
// it works on: standings has tasks stand elsewhere, booking adds up what they hold,
// workload adds and removes jobs, specs gives jobs other specs, accounts gives queues
// other terms, inventory gives nodes other specs, and sightings has tasks be where
// they were seen. A Change applies itself by means of these.
//
// The package knows no policy, no clock, no input or output.
package cluster
