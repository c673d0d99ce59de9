// Package replay runs a trace of a cluster through the engine, on a virtual clock: tasks arrive,
// are placed or refused, and end. It measures how much of the devices is allocated, how long jobs
// wait, and how long decisions take.
//
// It makes no decisions of its own. Equal traces give equal decisions; only the measured times
// differ from run to run.
package replay
