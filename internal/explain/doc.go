// Package explain writes for people what the engine decided: the message of a refusal, the
// report of "berth why", a picture of the devices. It gets its facts from the outcomes of the
// engine and from the types of package wire.
//
// It runs no session and changes no State. Package whatif finds out what a change would do.
package explain
