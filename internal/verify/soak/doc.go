// Package soak lives through random clusters: nodes come, change and go, jobs
// arrive, run, are evicted and end, queues and budgets change, time passes,
// sessions decide, and the scheduler dies half way through doing what it decided
// and comes back knowing only what is there. After every step it checks what
// Berth promises. It runs the engine that ships, with every standard plugin, and
// has the brute-force scan check each decision.
//
// A life is a seed: every step has dice of its own, made of the seed and the
// step's number, so that a failing life can be cut down to the steps that matter.
package soak
