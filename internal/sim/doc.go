// Package sim runs the engine over a State until nothing is decided any more, and
// carries out what was decided: tasks start and evicted tasks release their room at
// once. It writes nothing and knows no command.
package sim
