// Package queuestatus writes the status of Queue objects: their quota, fair share, and what
// is allocated and pending, and the condition Active.
//
// Statuses are for users. The scheduler does not read them, and decides the same without
// them: a definition that is not installed, a conflict or a server that does not answer delays
// statuses and nothing else. A status is written only if it differs from the one of the object,
// and at most once per interval. Fields that this package does not compute, such as usage, are
// left as they are.
package queuestatus
