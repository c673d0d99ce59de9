package explain

import (
	"fmt"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Question asks why a workload is where it is, or is not.
type Question struct {
	Engine   *engine.Engine
	State    *cluster.State // before the simulation; it is changed
	Workload string         // its ID, or that of a set: then the first of it that is pending
	Now      int64
	// Tries bounds how many changes are tried out; 0 means 64, or fewer where
	// thousands are pending.
	Tries int
	// Knobs of a workload, beyond what its tasks alone let one try; nil: there are none.
	Knobs func(id string) []Knob
}

// Beyond is a rejection that no change which can be tried cures. Its plugin says what may.
type Beyond struct {
	Plugin string        `json:"plugin"`
	Reason engine.Reason `json:"reason"`
	Cure   string        `json:"cure"` // Wait, Evict, Grow or Relax, with | between several
}

// Report answers it.
type Report struct {
	Workload string `json:"workload"`
	Wants    string `json:"wants"` // one sentence
	// Remarks are what whoever made the workload has to say about it.
	Remarks []string `json:"remarks,omitempty"`
	// Set is how many of the workload's set have a place, if it is in one.
	Set *SetReport `json:"set,omitempty"`
	// Offer is what there is free for a model, in one sentence.
	Offer string `json:"offer,omitempty"`
	// Foreign is what readings found in use on devices that it could have, in one sentence.
	Foreign string `json:"foreign,omitempty"`
	// Form that it took, of a model.
	Form string `json:"form,omitempty"`
	// Group is how the group was chosen, where it takes whole nodes.
	Group *GroupChoice `json:"group,omitempty"`
	// Placements are its tasks that have a place.
	Placements []Placement `json:"placements"`
	// Ended are its tasks that have ended.
	Ended []Ended `json:"ended,omitempty"`
	// TornSince is since when it has run below its minimum.
	TornSince string `json:"tornSince,omitempty"`
	// Evicted is what the simulation evicted of it, and Displaced whom it evicted for it.
	Evicted   []Eviction `json:"evicted,omitempty"`
	Displaced []Eviction `json:"displaced,omitempty"`
	Refusal   *Refusal   `json:"refusal,omitempty"`
	// Ranking is that of its set, where that had more replicas than are desired.
	Ranking *Ranking `json:"ranking,omitempty"`
	// Queues are how its queue and those above it stand with what it lacks.
	Queues []Standing `json:"queues,omitempty"`
	Nodes  int        `json:"nodes"`            // in the cluster
	Funnel []Step     `json:"funnel,omitempty"` // who turned down how many of them, in filter order
	// Forms are those that were tried, of a model that has several.
	Forms  []Tried `json:"forms,omitempty"`
	Own    int     `json:"own,omitempty"`    // nodes that its own other tasks would take
	Trials []Trial `json:"trials,omitempty"` // what would help, smallest change first, and what would not
	Tried  int     `json:"tried,omitempty"`  // how many changes were tried out
	// Conflict: no change to the cluster could ever help.
	Conflict bool `json:"conflict,omitempty"`
	// Beyond is what would still be in the way if everything that can be tried were granted.
	Beyond *Beyond `json:"beyond,omitempty"`

	torn               string // since when it has run below its minimum, in a sentence
	total, tasks, need int
	retired            bool
	kept               bool // in a form that it would not be placed in any more, as the last remark says
	own                map[string]bool
	groups, domains    []string
	reasons            []string // why its queue has no more, and why nobody goes for it
}

// Placement is where a task went and why.
type Placement struct {
	Task    string `json:"task"`
	Node    string `json:"node"`
	Devices []int  `json:"devices"`
	// Running: it was there before; nobody chose it now.
	Running  bool               `json:"running,omitempty"`
	Leaving  bool               `json:"leaving,omitempty"`  // it was told to stop
	Promised bool               `json:"promised,omitempty"` // the room is still being freed
	WaitsFor []string           `json:"waitsFor,omitempty"` // tasks that are leaving it: workload/task, or just the pod
	Score    *float64           `json:"score,omitempty"`
	Scores   map[string]float64 `json:"scores,omitempty"`
	RunnerUp *Candidate         `json:"runnerUp,omitempty"`
	Others   int                `json:"others,omitempty"` // nodes that would have done as well
}

// Ended is a task that has ended, and how: Succeeded or Failed.
type Ended struct {
	Task  string `json:"task"`
	State string `json:"state"`
}

// Step is one line of the funnel.
type Step struct {
	Nodes   int    `json:"nodes"`
	Plugin  string `json:"plugin"`
	Reason  string `json:"reason"`
	Words   string `json:"words"`
	Example string `json:"example,omitempty"`
}

// Trial is a change that was made on a copy and judged by a full session.
type Trial struct {
	Fits    bool   `json:"fits"`
	Kind    Kind   `json:"kind"`
	Change  string `json:"change"`
	Because string `json:"because,omitempty"` // why it still does not fit
	// Evicts are the workloads that would have to go for it then.
	Evicts []string `json:"evicts,omitempty"`
}

const defaultTries = 64

// affordable is how many changes are tried out where so many workloads are pending:
// each try is a session in which all of them compete.
func affordable(pending int) int {
	const many, fewest = 500, 12
	return max(fewest, min(defaultTries, defaultTries*many/max(1, pending)))
}

// Why answers the question.
func Why(q Question) (*Report, error) {
	if q.State.Job(q.Workload) == nil && len(q.State.View().Sets().Jobs(q.Workload)) == 0 {
		return nil, fmt.Errorf("no workload %q", q.Workload)
	}
	was := lookBack(q.State, q.Workload)
	defer q.State.Release(was.mark)
	sim, err := Simulate(q.Engine, q.State, Options{Now: q.Now, record: true})
	if err != nil {
		return nil, err
	}
	j := sim.member(q.Workload, was)
	q.Workload = j.ID
	r := &Report{Workload: j.ID, Wants: Wants(j), Remarks: j.Remarks, Set: setReport(q.State, j), Placements: []Placement{}, Nodes: len(q.State.Nodes()), total: len(j.Tasks())}
	if alt := &j.Alternatives[max(0, j.Chosen)]; j.Chosen >= 0 && alt.Tasks[0].Shape.Served() {
		r.Form, r.kept = alt.Name, alt.Running
	}
	if err := r.place(q, was, sim, j); err != nil {
		return nil, err
	}
	for i := range sim.Rankings {
		if sim.Rankings[i].Set == j.Set.Name {
			ranking := ranking(&sim.Rankings[i])
			r.Ranking, r.retired = &ranking, j.Retired
		}
	}
	refused := sim.refusal(j.ID)
	if refused == nil {
		return r, nil
	}
	sought := refused.Spared
	if refused, err = inFull(q, refused); err != nil {
		return nil, err
	}
	out := sim.Phrases.refusal(refused, false)
	r.Refusal = &out
	w := &workload{q.State, j.ID, refused, mainAttempt(refused)}
	l := &lab{engine: q.Engine, workload: w, now: q.Now, budget: max(q.Tries, 0), at: map[*change]int64{}, evicted: map[*change][]string{}}
	if q.Tries == 0 {
		l.budget = affordable(len(q.State.Pending()))
	}
	r.Offer, r.Foreign = offer(q.State, w.shape()), foreign(q.State, w.shape())
	var c *claim
	if !refused.Surplus { // nothing is evicted for surplus
		c = newClaim(l, sought)
		r.room(c, sim.Phrases)
	}
	r.funnel(l, sim.Phrases)
	r.Forms = tried(w, sim.Phrases)
	if r.Nodes > 0 { // without any node there is nothing to add more of
		var knobs []Knob
		if q.Knobs != nil {
			knobs = q.Knobs(q.Workload)
		}
		found := &finder{lab: l, phrases: sim.Phrases}
		r.Conflict = found.seek(c, knobs)
		if b := found.beyond; b != nil {
			r.Beyond = &Beyond{b.Plugin, b.Reason, b.Cure.String()}
		}
		r.Tried, r.Trials = l.tries, found.trials()
	}
	return r, l.err
}

// SetReport is how a set of replicas stands.
type SetReport struct {
	Name    string `json:"name"`
	Desired int    `json:"desired"`
	Placed  int    `json:"placed"`
}

func setReport(s *cluster.State, j *cluster.Job) *SetReport {
	if j.Set.Name == "" {
		return nil
	}
	out := &SetReport{Name: j.Set.Name, Desired: s.View().Sets().Desired(j.Set.Name)}
	for _, o := range s.View().Sets().Jobs(j.Set.Name) {
		if o.Stands() {
			out.Placed++
		}
	}
	return out
}

// member is the workload itself, or of a set the first that is pending. Those that
// were retired are of no set any more, so a set of none is found as it was before.
func (sim *Simulation) member(id string, was *before) *cluster.Job {
	if j := sim.State.Job(id); j != nil {
		return j
	}
	set := sim.State.View().Sets().Jobs(id)
	for _, j := range set {
		if sim.refusal(j.ID) != nil {
			return j
		}
	}
	if len(set) == 0 {
		return sim.State.Job(was.jobs[0])
	}
	return set[0]
}

// inFull is the refusal with every node's rejection in it, which a simulation leaves
// out. The other pending jobs found no place either, so the job is tried alone; where
// that changes the answer, it is tried among the others, unless there are too many.
func inFull(q Question, refused *engine.Refusal) (*engine.Refusal, error) {
	full, err := explained(q, refused, true)
	if full == nil && err == nil && len(q.State.Nodes())*len(q.State.Pending()) <= fullMisses {
		full, err = explained(q, refused, false)
	}
	if full == nil || err != nil {
		return refused, err
	}
	full.Permanent = refused.Permanent
	return full, nil
}

// explained runs a session that explains everything, and takes it back. It returns
// what the session says of the job; nil where that is not the same refusal.
func explained(q Question, refused *engine.Refusal, alone bool) (*engine.Refusal, error) {
	defer undoing(q.State)()
	for _, j := range q.State.Pending() {
		if alone && j.ID != q.Workload && j.Placed() == 0 {
			if err := q.State.Apply(cluster.JobGone{Job: j.ID}); err != nil {
				return nil, err
			}
		}
	}
	out, err := run(q.Engine, q.State, engine.Options{Now: q.Now, Explain: true})
	if err != nil {
		return nil, err
	}
	for _, r := range out.Refusals {
		if r.Job == q.Workload && r.Reason == refused.Reason && r.Surplus == refused.Surplus {
			return r, nil
		}
	}
	return nil, nil
}

// funnel counts who turned down which nodes. Nodes that only the workload's own
// other tasks fill are told apart: they show how near it came.
func (r *Report) funnel(l *lab, ph Phrases) {
	a := l.workload.attempt
	if r.domains = domainLines(a); a.Level != "" {
		return // its counts are about one domain, and the sentence says it all
	}
	own := l.ownNodes()
	r.own = own
	for i := range a.Counts {
		for _, m := range missesOf(a, &a.Counts[i]) {
			if own[m.Node] {
				r.Own++
			}
		}
	}
	r.Funnel = ph.steps(a, own)
	r.tasks, r.need = a.Placed, a.Min
	r.groups = ph.groupLines(a)
}

// ownNodes are the nodes where the tasks of the same role would be that did find
// a place; other roles take other room.
func (l *lab) ownNodes() map[string]bool {
	w := l.workload
	a, out := w.attempt, map[string]bool{}
	if a.Placed == 0 || w.refusal.Surplus || a.Before != nil {
		return out
	}
	l.tryAnd(func(s *cluster.State) {
		for _, t := range s.Job(w.id).Tasks() {
			if t.Node != nil && t.Role == a.Task.Role {
				out[t.Node.Name] = true
			}
		}
	}, &change{apply: w.atLeast(a.Placed)})
	return out
}

// brief is the heart of a refusal: why a change did not help.
func (ph Phrases) brief(r *engine.Refusal) string {
	a := mainAttempt(r)
	text := ""
	if a.Level != "" {
		return domainsText(a)
	}
	if a.Placed > 0 && !r.Surplus {
		text = fmt.Sprintf("only %d of %d find a place; ", a.Placed, a.Min)
	}
	if a.Before != nil {
		return text + ph.words(a.Before, nil)
	}
	for _, g := range a.Groups {
		if g.Rejection != nil {
			return text + g.Key.String() + ": " + ph.words(g.Rejection, nil)
		}
	}
	for i := range a.Counts {
		if t := &a.Counts[i]; t.Reason == r.Reason || a.Whole && len(a.Groups) == 0 {
			if misses := missesOf(a, t); len(misses) > 0 {
				return text + strings.TrimSpace(ph.words(&misses[0].Rejection, misses)+" "+ph.example(misses))
			}
		}
	}
	if phrase := ph[r.Reason].Phrase; phrase != "" && !strings.Contains(phrase, "{") {
		return text + phrase
	}
	return text + spell(string(r.Reason))
}
