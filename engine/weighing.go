package engine

// mostNamed is how many jobs and options are named in an explanation.
const mostNamed = 10

// Weighing is how a plan to make room was found: it goes with every eviction.
type Weighing struct {
	Purpose Purpose
	Looks   int // nodes looked at closely in vain
	Tries   int // plans put to Place
	// Options are other nodes that would have done for a task, with what each would have cost.
	Options []Option
	Spared  []Protection
}

// Option is a node on which room could have been made for a task.
type Option struct {
	Task   string
	Node   string
	Go     []string // tasks that would have had to go
	Chosen bool
}

// Protection is jobs that might have gone, had nobody spared them.
type Protection struct {
	Spared
	Jobs []string // ten at most
}

// Sparing is what an adapter ran into before it gave up.
type Sparing struct {
	Purpose    Purpose
	Protection []Protection
}

func (r *Refusal) spare(p Purpose, spared []Protection) {
	if len(spared) > 0 {
		r.Spared = append(r.Spared, Sparing{p, spared})
	}
}
