// Package soak runs random sequences of events on small clusters: nodes are added,
// changed and lost; jobs arrive, run, are evicted and end; queues and budgets change;
// time passes; sessions decide; and the scheduler crashes while its decisions are
// carried out, and starts again from what is there. After every step the package
// checks the invariants that Berth guarantees. It runs the engine with all standard
// plugins, and compares each decision of the index with a scan of all nodes.
//
// A sequence is called a life and is determined by its seed. Every step has a random
// source of its own, made from the seed and the number of the step, so that a failing
// life can be reduced to the steps that matter.
package soak
