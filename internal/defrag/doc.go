// Package defrag plans moves of running tasks: it frees whole devices or whole nodes, makes room for
// pending jobs, or turns free room that arriving tasks cannot use into room that they can use.
//
// A plan is a sequence. Each move is onto room that is free at that moment, so that the plan can be
// carried out in this order, one move after the other, and nothing is held twice in between.
// engine.Mover finds the room and decides which tasks may move, as it does for a task
// that is moved to make room for another job. The package chooses the tasks, and measures what each
// move gains. It counts steps and not time, so that equal input gives an equal plan.
package defrag
