// Package soak lives through random clusters: nodes come, change and go, jobs
// arrive, run, are evicted and end, sessions decide, statements are rolled back.
// After every step it checks what Berth promises. It runs the engine that ships,
// with every standard plugin, and has the brute-force scan check each decision.
package soak
