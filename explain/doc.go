// Package explain turns what the engine decided into what people read: the
// documented result of a simulation, sentences for refusals, a picture of the
// devices, and the report of "berth why" with the smallest changes under which
// a workload would fit.
//
// It decides nothing. Whatever it claims would help, it has tried: on a copy of
// the books, with the change made, by running the same engine.
package explain
