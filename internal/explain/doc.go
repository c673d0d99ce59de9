// Package explain turns what the engine decided into what people read: the
// documented result of a simulation, sentences for refusals, a picture of the
// devices, and the report of "berth why" with the smallest changes under which
// a workload would fit.
//
// It decides nothing. Whatever it claims would help, it has tried: it made the
// change, ran the same engine, and undid both.
//
// Why asks about one workload. A lab tries changes on its State, and a finder
// collects which of them help. Each kind of change has a type that seeks it: claimer
// (bounds, quotas, priority, time), relaxer (conditions), evictor (other workloads),
// grower (nodes), turner (knobs), shrinker (the request), and combiner for several
// changes at once.
package explain
