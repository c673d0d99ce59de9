package engine

// Standing is what a queue holds and requests of one resource, and what it is entitled to. It
// explains evictions and refusals; no decision depends on it. All amounts are in the unit in which the
// resource is counted.
type Standing struct {
	Queue    string
	Resource string
	Used     int64 // what its tasks hold
	Request  int64 // what its tasks hold, and what its pending tasks request
	Share    int64 // its fair share
	Quota    int64 // its quota, or that of the queues below it together; -1: it has none
}
