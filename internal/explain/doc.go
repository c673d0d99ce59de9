// Package explain writes what the engine decided in words: the message of a refusal, the
// report of "berth why", a picture of the devices. It gets its facts from the engine's
// outcomes and from the results of package wire.
//
// It runs no session and changes no State. What a change would do is found out by
// package whatif.
package explain
