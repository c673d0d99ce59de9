package cluster_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
)

// allFields is a job with all fields, in the order in which they are written.
const allFields = `{"id":"job/a","uid":"u","namespace":"n","queue":"q","priority":1,"created":2,"preemptible":true,"runFor":3,"staleGrace":4,"preemptionDelay":5,` +
	`"labels":{"app":"a"},"alternatives":[{"min":1}],"affinity":[{"selector":[{"key":"k","operator":"Exists"}],"anti":true}],` +
	`"set":{"name":"s","desired":1},"displaced":["job/b"],"health":"Running","offload":{"layers":1,"total":2},"retired":true,"open":true,` +
	`"remarks":["r"],"torn":6,"evicted":7,"parked":{"tries":1,"retryAt":8},"bindRefused":{"tries":2,"retryAt":9},"earmarked":{"since":10,"rooms":[{"node":"a"}]}}`

// TestJobFormat checks that a job is written with all its fields in a fixed order, and is read
// again.
func TestJobFormat(t *testing.T) {
	var j cluster.Job
	if err := json.Unmarshal([]byte(allFields), &j); err != nil {
		t.Fatal(err)
	}
	written, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	if string(written) != allFields {
		t.Errorf("wrote %s\nwant  %s", written, allFields)
	}
	for _, of := range []reflect.Type{reflect.TypeFor[cluster.Job](), reflect.TypeFor[cluster.JobDetails]()} {
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			if name != "" && name != "-" && !strings.Contains(allFields, `"`+name+`":`) {
				t.Errorf("the test does not set the field %s of %s", name, of.Name())
			}
		}
	}
	var plain strings.Builder
	e := json.NewEncoder(&plain)
	e.SetEscapeHTML(false)
	if err := e.Encode(cluster.Job{ID: "job/<&>", Labels: map[string]string{"x": "<&>"}}); err != nil || plain.String() != `{"id":"job/<&>","labels":{"x":"<&>"}}`+"\n" {
		t.Errorf("wrote %s (%v)", plain.String(), err)
	}
	empty, err := json.Marshal(cluster.Job{})
	if want := `{"id":""}`; err != nil || string(empty) != want {
		t.Errorf("wrote %s (%v), want %s", empty, err, want)
	}
}

// TestDetailsAreShared checks that jobs without details share one record, that a job gets another
// record when a detail changes, and that a copy of a State does not see the change.
func TestDetailsAreShared(t *testing.T) {
	s := cluster.NewState()
	for _, id := range []string{"job/a", "job/b"} {
		put := putJob(id, "w")
		put.Job.OwnDetails()
		if err := s.Apply(put); err != nil {
			t.Fatal(err)
		}
	}
	a, b := s.Job("job/a"), s.Job("job/b")
	if a.JobDetails == nil || a.JobDetails != b.JobDetails {
		t.Error("jobs without details have different records")
	}
	before := s.Clone()
	mark := s.Mark()
	if err := s.Apply(cluster.Park{Job: a.ID, Parked: cluster.Parked{Tries: 1, RetryAt: 5}}); err != nil {
		t.Fatal(err)
	}
	if a.Parked == nil || b.Parked != nil || before.Job(a.ID).Parked != nil {
		t.Error("the change of one job is not that of one job")
	}
	s.Undo(mark)
	s.Release(mark)
	if a.JobDetails != b.JobDetails {
		t.Error("a job without details keeps a record of its own")
	}
	spec := a.Spec()
	spec.JobDetails.Remarks = []string{"r"} // the details of a spec are its own
	if len(b.Remarks) > 0 {
		t.Error("a change of a spec changed a job of the State")
	}
}
