// Package soak runs random sequences of steps on small clusters: nodes are added,
// changed and lost; jobs arrive, run, are evicted and end; queues and budgets change;
// time passes; sessions decide; and the scheduler crashes while its decisions are
// carried out, and starts again from what is there. After every step the package
// checks the invariants that Berth guarantees. It runs the engine with all standard
// plugins, and compares each decision of the index with a scan of all nodes.
//
// A Sequence is determined by its seed. Every step has a random source of its own, made
// from the seed and the number of the step, so that a sequence that fails can be
// reduced to the steps that matter.
//
// A sequence runs as a simulation, which has these parts. A part calls only parts of
// its own line and of the lines below it:
//
//	the steps          jobEvents, modelEvents, taskEvents, nodeEvents, queueEvents,
//	                   sessions, statements, comparisons
//	the checks         stateCheck after every step, sessionCheck after every session;
//	                   they use evictionCheck, siteCheck, nodeSums and queueSums
//	other programs     controller restarts gangs, recovery starts a new scheduler after
//	                   a crash, workload creates and removes jobs
//	executor           carries out decisions: bindings and evictions
//	random objects     jobMaker, modelMaker, nodeMaker
//	scheduler          what is tested: the engine, its State, and the log on disk
//	history            what the checks remember from one session to the next
//	site               what really exists: nodes, objects of users, processes, the time
//	dice, Counts       the random source, and what happened
package soak
