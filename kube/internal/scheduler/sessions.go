package scheduler

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/live"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/kube/internal/history"
	"github.com/berth-project/berth/kube/internal/intree"
)

// Sessions are the last sessions of a Scheduler, with their input. List and Write are safe for
// concurrent use.
type Sessions struct {
	history       *history.History
	leader        *live.Leader
	engine        *engine.Engine
	store         *intree.Store
	phrases       explain.Phrases
	configuration *v1alpha1.SchedulerConfiguration
}

// Sessions returns the last sessions.
func (s *Scheduler) Sessions() *Sessions { return &s.sessions }

// run runs a session, and keeps its input.
func (s *Sessions) run(o engine.Options) (engine.Outcome, error) {
	begin := time.Now()
	s.history.Open(history.Session{Options: o, Parameters: s.engine.Parameters(), Assumed: s.store.Assumed(s.leader.State().View())})
	out, err := s.leader.Run(o)
	s.history.Close(&out, int64(time.Since(begin)), err)
	return out, err
}

// SessionSummary is a session that is kept, in a list.
type SessionSummary struct {
	Number    uint64    `json:"number"`
	Time      time.Time `json:"time"`
	Took      string    `json:"took"`
	Tried     int       `json:"tried"` // how many jobs had a turn
	Bound     int       `json:"bound"` // how many pods
	Nominated int       `json:"nominated"`
	Evicted   int       `json:"evicted"`
	Refused   int       `json:"refused"` // how many jobs got a new refusal
	Error     string    `json:"error,omitempty"`
}

// List returns the sessions whose input is kept, the oldest first.
func (s *Sessions) List() ([]SessionSummary, error) {
	list, err := s.history.Sessions()
	out := make([]SessionSummary, 0, len(list))
	for _, kept := range list {
		summary := SessionSummary{
			Number: kept.Number, Time: time.Unix(0, kept.Options.Now).UTC(), Took: time.Duration(kept.Took).String(),
			Tried: len(kept.Outcome.Tried), Refused: len(kept.Outcome.Refusals),
		}
		for i := range kept.Outcome.Decisions {
			switch kept.Outcome.Decisions[i].Action {
			case engine.Bind:
				summary.Bound++
			case engine.Nominate:
				summary.Nominated++
			case engine.EvictTask:
				summary.Evicted++
			}
		}
		if kept.Err != nil {
			summary.Error = kept.Err.Error()
		}
		out = append(out, summary)
	}
	return out, err
}

// Write writes the input of a session as a snapshot. It returns false, and writes nothing, if
// the input is not kept.
func (s *Sessions) Write(number uint64, to io.Writer) (found bool, err error) {
	in, err := s.history.Input(number)
	if in == nil || err != nil {
		return false, err
	}
	filters, err := encodeFilterInput(s.configuration, in)
	if err != nil {
		return false, err
	}
	out := (&manifest.Bundle{}).Snapshot(in.State, in.Options.Now, withoutFilters(in.Parameters))
	out.Configuration, out.Kubernetes = PlainConfiguration(s.configuration), filters
	out.Session = &manifest.Session{Number: in.Number, Hold: in.Options.Hold, Tried: in.Outcome.Tried}
	out.Session.Decisions, out.Session.Refusals = SessionDecisions(s.phrases, &in.Outcome)
	return true, out.Write(to)
}

// withoutFilters returns the parameters without those of the filters of Kubernetes, on which no
// decision depends.
func withoutFilters(parameters map[string]uint64) map[string]uint64 {
	delete(parameters, intree.Name)
	if len(parameters) == 0 {
		return nil
	}
	return parameters
}

// PlainConfiguration returns the configuration for a program without the filters of Kubernetes.
func PlainConfiguration(c *v1alpha1.SchedulerConfiguration) *v1alpha1.SchedulerConfiguration {
	if c == nil {
		return nil
	}
	out := *c
	out.Plugins, out.Profiles = withoutFilter(c.Plugins), slices.Clone(c.Profiles)
	for i := range out.Profiles {
		out.Profiles[i].Plugins = withoutFilter(out.Profiles[i].Plugins)
	}
	return &out
}

func withoutFilter(list []v1alpha1.PluginConfig) []v1alpha1.PluginConfig {
	return slices.DeleteFunc(slices.Clone(list), func(p v1alpha1.PluginConfig) bool { return p.Name == intree.Name })
}

// SessionDecisions returns the decisions and refusals of an outcome in the form of a snapshot.
func SessionDecisions(phrases explain.Phrases, out *engine.Outcome) (decisions []manifest.SessionDecision, refusals []manifest.SessionRefusal) {
	for i := range out.Decisions {
		d := &out.Decisions[i]
		to := manifest.SessionDecision{Action: string(d.Action), Workload: d.Task.Job, Task: d.Task.Name, Node: d.Node, For: d.For}
		for _, c := range d.Claims {
			to.Devices = append(to.Devices, c.Device)
		}
		decisions = append(decisions, to)
	}
	for _, r := range out.Refusals {
		refusals = append(refusals, manifest.SessionRefusal{Workload: r.Job, Reason: string(r.Reason), Message: phrases.Message(r)})
	}
	return decisions, refusals
}

// SavedSession is a session that was read from a snapshot.
type SavedSession struct {
	*manifest.Session
	State         *cluster.State
	Now           int64
	Configuration *v1alpha1.SchedulerConfiguration // with the filters of Kubernetes
	Parameters    map[string]uint64
}

// ReadSession makes a State of the bundle, which must be the input of a session, and fills the
// Store with what the filters of Kubernetes read.
func ReadSession(b *manifest.Bundle, store *intree.Store) (*SavedSession, error) {
	session, read := manifest.SessionOf(b)
	var filters filterInput
	if err := json.Unmarshal(read, &filters); err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	if err := filters.fill(store); err != nil {
		return nil, err
	}
	state, err := b.State()
	if err != nil {
		return nil, err
	}
	return &SavedSession{Session: session, State: state, Now: b.Now(), Configuration: filters.Configuration, Parameters: b.Parameters()}, nil
}
