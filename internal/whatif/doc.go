// Package whatif tries changes on a State: it makes a change, runs the engine, reads the
// result, and undoes both. It decides nothing itself. It reports that a change helps only if
// the change was tried.
//
// WhatIf and Compare report which tasks are placed, moved, evicted or pending because of a
// change.
//
// Why reports why a workload is placed where it is, or why it is pending, and finds the
// smallest changes with which a pending workload would be placed. A lab tries changes, and a
// finder collects the changes that help. There is one Go type for each way to search for
// changes: promoter (limits, quotas, priority, time), relaxer (conditions of the request),
// evictor (other workloads), grower (more nodes), knobTurner (settings of a model), shrinker
// (a smaller request), and combiner (several changes together).
package whatif
