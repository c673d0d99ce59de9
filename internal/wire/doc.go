// Package wire has the types that Berth prints as JSON and YAML, and makes values of them
// from what the engine returns. The JSON is API: fields are added, never renamed, and equal
// input gives equal bytes. Go names may differ from the names in JSON.
//
// The package writes no sentences. Fields that hold a sentence, such as the message of a
// refusal, are left empty here, and package explain fills them in.
package wire
