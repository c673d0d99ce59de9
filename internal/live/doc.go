// Package live is a scheduler that keeps running. A Leader owns a State and an
// Engine, and gives every change a position. Others read without ever stopping it:
// a View is the tables of one position as values, and a Lab answers why and what-if
// questions on a State of its own. Every answer names the position at which it holds.
//
//	facts ──▶ Leader ──▶ Log
//	             │──▶ Ring ──────▶ Lab, Lab, …
//	             └──▶ Follower ──▶ View; a copy for a Lab that begins or fell behind
package live
