// Package wire has the results that Berth prints as JSON and YAML, and makes them from
// what the engine returns. They are API: fields are added, never renamed, and equal
// input gives equal bytes.
//
// The package writes no sentences. Fields that hold one, such as the message of a
// refusal, are left empty here, and package explain fills them in.
package wire
