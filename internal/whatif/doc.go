// Package whatif tries changes on a State: it makes a change, runs the engine, looks at
// the result, and undoes both. It decides nothing itself, and says of a change that it
// helps only if it was tried.
//
// WhatIf and Compare say which tasks gain and lose by a change.
//
// Why says why one workload is where it is or is pending, and finds the smallest changes
// by which a pending one would be placed. A lab tries changes, and a finder collects
// those that help. Each type of change has a type that looks for it: promoter (limits,
// quotas, priority, time), relaxer (conditions of the request), evictor (other
// workloads), grower (more nodes), knobTurner (settings of a model), shrinker (a smaller
// request), and combiner (several changes together).
package whatif
