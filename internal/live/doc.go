// Package live is a scheduler that keeps running. A Leader owns a State and an Engine, and
// gives every change a position. It never waits for readers: a View has the tables of one
// position as values, and a Lab answers why and what-if questions on a State of its own.
// Every answer has the position at which it is correct.
//
//	facts ──▶ Leader ──▶ Log
//	             │──▶ Ring ──────▶ Lab, Lab, …
//	             └──▶ Follower ──▶ View; a copy for a Lab that is new or fell behind
package live
