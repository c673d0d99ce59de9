// Package engine schedules: a Session reads the State of a cluster, calls the hooks that
// plugins registered, and produces Decisions or a Refusal for each pending job that it tries.
//
// The result depends only on State, the profile and the Options. The package does not know
// what a policy is for, where State comes from or how decisions are carried out. It does no
// input or output, reads no clock and uses no random numbers.
//
// A program builds a Registry of plugins and an Engine from a profile (New), opens a session
// (Engine.Open), runs it (Session.Run) and closes it (Session.Close). A plugin implements
// Plugin and registers its hooks in OnSessionOpen, with the Add methods of Hooks.
//
// To read the code, begin with Session.Run and continue with place.go.
package engine
