package cluster

import (
	"bytes"
	"encoding/json"
	"slices"
)

// JobDetails are the fields of a Job that most jobs do not have. The record of a job in a State
// never changes: State replaces it by another one, and jobs may share it.
type JobDetails struct {
	// StaleGrace is how long the job may run below its minimum before its remaining tasks
	// are evicted, in nanoseconds. A negative value means without limit; nil means the
	// value of the profile.
	StaleGrace *int64 `json:"staleGrace,omitempty"`
	// PreemptionDelay is how long after its creation, or after an eviction of one of its
	// tasks, no task is evicted or moved for the job, in nanoseconds. It may be Forever.
	PreemptionDelay int64 `json:"preemptionDelay,omitempty"`
	// Affinity has the terms about other jobs. Affinity to nodes is in the shapes of the
	// tasks.
	Affinity []JobTerm `json:"affinity,omitempty"`
	// Set is the set of replicas that the job belongs to.
	Set Set `json:"set,omitzero"`
	// Displaced has the IDs, sorted, of the jobs of which tasks were evicted for this job.
	// Tasks of these jobs are not evicted for it again.
	Displaced []string `json:"displaced,omitempty"`
	// Health is the reported health of a running replica.
	Health  Health  `json:"health,omitempty"`
	Offload Offload `json:"offload,omitzero"` // how many layers of a running replica are on devices
	// Remarks are sentences that `berth why` shows. Decisions do not depend on them.
	Remarks []string `json:"remarks,omitempty"`
	// BelowMinimumSince is when a session first found the job running below its minimum, in
	// nanoseconds since 1970; 0: it has its minimum, does not run, or this was not recorded.
	// Sessions record it only if a plugin of the profile has a Sweep hook.
	BelowMinimumSince int64 `json:"torn,omitempty"`
	// Evicted is when a task of the job was last evicted; 0: never. It is set only for
	// jobs with a PreemptionDelay.
	Evicted int64 `json:"evicted,omitempty"`
	// Parked is the back-off after a refusal; nil: the job was not refused.
	Parked *Parked `json:"parked,omitempty"`
	// BindRefused is the back-off after bindings of tasks of the job were refused (BindFailed
	// with RetryAt): the job is not pending before RetryAt. It is kept after that time, so that
	// the next back-off can be longer, until a task of the job is seen on the node that it was
	// assigned to. Nil: no binding was refused since then.
	BindRefused *Parked `json:"bindRefused,omitempty"`
	// Earmarked is the room that must not fill up before the job starts; nil: none. What it
	// points to never changes.
	Earmarked *Earmarked `json:"earmarked,omitempty"`
}

// noDetails is the record of all jobs of all States that have none of the details.
var noDetails = &JobDetails{}

// isEmpty reports whether the record has no details.
func (d *JobDetails) isEmpty() bool {
	return d.StaleGrace == nil && d.PreemptionDelay == 0 && len(d.Affinity) == 0 && d.Set == Set{} && len(d.Displaced) == 0 &&
		d.Health == "" && d.Offload == Offload{} && len(d.Remarks) == 0 && d.BelowMinimumSince == 0 && d.Evicted == 0 &&
		d.Parked == nil && d.BindRefused == nil && d.Earmarked == nil
}

// shared returns a record with the same content that is not written to.
func (d *JobDetails) shared() *JobDetails {
	if d.isEmpty() {
		return noDetails
	}
	kept := *d
	return &kept
}

// details returns the details of a job that may have no record of them.
func (j *Job) details() *JobDetails {
	if j.JobDetails == nil {
		return noDetails
	}
	return j.JobDetails
}

// kept returns the details of a spec as a State keeps them, with Displaced sorted.
func (d *JobDetails) kept() *JobDetails {
	if d.isEmpty() {
		return noDetails
	}
	k := *d
	k.StaleGrace, k.Affinity, k.Displaced = clonePointer(d.StaleGrace), slices.Clone(d.Affinity), slices.Clone(d.Displaced)
	slices.Sort(k.Displaced)
	k.Displaced = slices.Compact(k.Displaced)
	return &k
}

// withStatus returns the details of a new version of a job, which keeps what facts and decisions
// have recorded of the job.
func (d *JobDetails) withStatus(was *JobDetails) *JobDetails {
	k := *d
	k.Displaced, k.Health, k.Offload = was.Displaced, was.Health, was.Offload
	k.BelowMinimumSince, k.Evicted, k.Parked, k.BindRefused = was.BelowMinimumSince, was.Evicted, was.Parked, was.BindRefused
	return k.shared()
}

// OwnDetails gives the job a record of details that it shares with no other job, with the same
// content, and returns it. The caller may write to it until the job is part of a State.
func (j *Job) OwnDetails() *JobDetails {
	own := *j.details()
	j.JobDetails = &own
	return &own
}

// SetDetails gives the job these details.
func (j *Job) SetDetails(d JobDetails) { j.JobDetails = d.shared() }

// copied returns a copy of the record that shares nothing with it and has no earmark.
func (d *JobDetails) copied() *JobDetails {
	c := *d
	c.Displaced, c.Remarks, c.Affinity = slices.Clone(d.Displaced), slices.Clone(d.Remarks), slices.Clone(d.Affinity)
	c.StaleGrace, c.Parked, c.BindRefused, c.Set.Group = clonePointer(d.StaleGrace), clonePointer(d.Parked), clonePointer(d.BindRefused), clonePointer(d.Set.Group)
	c.Earmarked = nil
	for i := range c.Affinity {
		t := &c.Affinity[i]
		t.Namespaces, t.Selector = slices.Clone(t.Namespaces), slices.Clone(t.Selector)
		for k := range t.Selector {
			t.Selector[k].Values = slices.Clone(t.Selector[k].Values)
		}
	}
	return &c
}

// MarshalJSON writes the fields in an order that does not depend on which of them are details, so
// that snapshots stay as they are.
func (j Job) MarshalJSON() ([]byte, error) {
	d := j.details()
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false) // whether <, > and & are escaped is for the encoder that calls MarshalJSON to say
	err := e.Encode(struct {
		ID                string            `json:"id"`
		UID               string            `json:"uid,omitempty"`
		Namespace         string            `json:"namespace,omitempty"`
		Queue             string            `json:"queue,omitempty"`
		Priority          int32             `json:"priority,omitempty"`
		Created           int64             `json:"created,omitempty"`
		Preemptible       bool              `json:"preemptible,omitempty"`
		RunFor            int64             `json:"runFor,omitempty"`
		StaleGrace        *int64            `json:"staleGrace,omitempty"`
		PreemptionDelay   int64             `json:"preemptionDelay,omitempty"`
		Labels            map[string]string `json:"labels,omitempty"`
		Alternatives      []Alternative     `json:"alternatives,omitempty"`
		Affinity          []JobTerm         `json:"affinity,omitempty"`
		Set               Set               `json:"set,omitzero"`
		Displaced         []string          `json:"displaced,omitempty"`
		Health            Health            `json:"health,omitempty"`
		Offload           Offload           `json:"offload,omitzero"`
		Retired           bool              `json:"retired,omitempty"`
		Open              bool              `json:"open,omitempty"`
		Remarks           []string          `json:"remarks,omitempty"`
		BelowMinimumSince int64             `json:"torn,omitempty"`
		Evicted           int64             `json:"evicted,omitempty"`
		Parked            *Parked           `json:"parked,omitempty"`
		BindRefused       *Parked           `json:"bindRefused,omitempty"`
		Earmarked         *Earmarked        `json:"earmarked,omitempty"`
	}{j.ID, j.UID, j.Namespace, j.Queue, j.Priority, j.Created, j.Preemptible, j.RunFor, d.StaleGrace, d.PreemptionDelay, j.Labels, j.Alternatives,
		d.Affinity, d.Set, d.Displaced, d.Health, d.Offload, j.Retired, j.Open, d.Remarks, d.BelowMinimumSince, d.Evicted, d.Parked, d.BindRefused, d.Earmarked})
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}
