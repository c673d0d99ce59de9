// Package engine decides: it opens a Session over the cluster's State, asks the
// plugins' hooks, and turns pending jobs into Decisions or Refusals.
//
// It is a pure function of State, profile and options. It refuses to know what a
// policy is for, where the cluster came from and where decisions go; it does no
// input or output, reads no clock and has no source of randomness.
//
// Start reading at Session.Run, then place.go.
package engine
