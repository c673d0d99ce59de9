// Package sim runs the engine over a State until nothing is decided any more, and carries
// out what was decided: tasks start, and evicted tasks release their room at once. It
// writes no text.
package sim
