package engine

// Standing is how a queue stands with one resource: what it holds and what it
// should have. It is what a decision about others was made on, to be told.
type Standing struct {
	Queue    string
	Resource string
	Used     int64
	Request  int64 // what it holds and what its pending tasks ask for
	Share    int64 // its fair share
	Quota    int64 // its own, or that of the queues below it; -1: none
}
