package cluster_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/google/go-cmp/cmp"
)

const (
	aNode = `"nodes":[{"node":{"name":"n","resources":[{"name":"cpu","capacity":4000}],"devices":[{"uuid":"g","memory":100},{"uuid":"h","memory":100,"lost":true,"gone":true}]}}]`
	aJob  = `"jobs":[{"job":{"id":"j","alternatives":[{"min":1,"tasks":[{"name":"t","shape":{"resources":{"cpu":1}}}]}]}}]`
)

func withTask(record string) string {
	return `{` + aNode + `,` + aJob + `,"tasks":[{"task":{"job":"j","name":"t"},` + record + `}]}`
}

// invalidSnapshots are snapshots that no State writes, by the error with which they are
// rejected.
var invalidSnapshots = map[string]string{
	`now is -1; it must be from 0 to 4611686018427387904`:                                `{"now":-1}`,
	`queue "" has no name, or is listed twice`:                                           `{"queues":[{}]}`,
	`queue "a" has no name, or is listed twice`:                                          `{"queues":[{"queue":{"name":"a"}},{"queue":{"name":"a"}}]}`,
	`queue "a" cannot be below "a"`:                                                      `{"queues":[{"queue":{"name":"a","parent":"a"}}]}`,
	`queue "a": cpu is -5; it must be from 0 to 1152921504606846976`:                     `{"queues":[{"queue":{"name":"a","quota":{"cpu":-5}}}]}`,
	`queue "a": past use from 2 to 1 is not an interval`:                                 `{"queues":[{"queue":{"name":"a","past":[{"from":2,"to":1}]}}]}`,
	`node "n" has no name, or is listed twice`:                                           `{"nodes":[{"node":{"name":"n"}},{"node":{"name":"n"}}]}`,
	`node "n": memory is -1; it must be from 0 to 1152921504606846976`:                   `{"nodes":[{"node":{"name":"n","devices":[{"memory":-1}]}}]}`,
	`node "n": resource "cpu" is listed twice`:                                           `{"nodes":[{"node":{"name":"n","resources":[{"name":"cpu"},{"name":"cpu"}]}}]}`,
	`node "n": two devices have the UUID "g"`:                                            `{"nodes":[{"node":{"name":"n","devices":[{"uuid":"g"},{"uuid":"g"}]}}]}`,
	`node "n": device "h" is not in order: devices that are gone must be lost, and last`: `{"nodes":[{"node":{"name":"n","devices":[{"uuid":"g","gone":true,"lost":true},{"uuid":"h"}]}}]}`,
	`node "n": a shape is missing`:                                                       `{"nodes":[{"node":{"name":"n","avoids":[{"until":5}]}}]}`,
	`node "n" is marked unknown, and is not marked absent`:                               `{"nodes":[{"node":{"name":"n"},"unknown":true}]}`,
	`node "n" is gone, and no task is on it`:                                             `{"nodes":[{"node":{"name":"n"},"absent":true}]}`,
	`budget "/b" has no name, or is listed twice`:                                        `{"budgets":[{"name":"b"},{"name":"b"}]}`,
	`set "" has no name, or is listed twice`:                                             `{"sets":[{}]}`,
	`set "s" has neither a size nor a group of its own`:                                  `{"sets":[{"name":"s"}]}`,
	`the size of a set is -2; it must be from 0 to 1152921504606846976`:                  `{"sets":[{"name":"s","scaled":-2}]}`,
	`job "j" has no name, or is listed twice`:                                            `{"jobs":[{"job":{"id":"j","alternatives":[{"min":1,"tasks":[{"name":"t","shape":{}}]}]}},{"job":{"id":"j"}}]}`,
	`j has no tasks`:                                                                                        `{"jobs":[{"job":{"id":"j"}}]}`,
	`j: task t has no shape`:                                                                                `{"jobs":[{"job":{"id":"j","open":true,"alternatives":[{"tasks":[{"name":"t"}]}]}}]}`,
	`j: a task has no name`:                                                                                 `{"jobs":[{"job":{"id":"j","alternatives":[{"running":true,"tasks":[null]}]}}]}`,
	`j has 2 alternatives`:                                                                                  `{"jobs":[{"job":{"id":"j","open":true,"alternatives":[{},{}]}}]}`,
	`j: task "t" has no name, or is listed twice`:                                                           `{"jobs":[{"job":{"id":"j","open":true,"alternatives":[{"tasks":[{"name":"t","shape":{}},{"name":"t","shape":{}}]}]}}]}`,
	`j: subgroup g has a parent that is not listed before it`:                                               `{"jobs":[{"job":{"id":"j","open":true,"alternatives":[{"subgroups":[{"name":"g","parent":1}]}]}}]}`,
	`j: it needs 2 subgroups, and has 1`:                                                                    `{"jobs":[{"job":{"id":"j","open":true,"alternatives":[{"minSubgroups":2,"subgroups":[{"name":"g"}]}]}}]}`,
	`task j/t: it cannot be Failed on node "n"`:                                                             withTask(`"status":"Failed","node":"n"`),
	`j: the minimum is 4, and there are 1 tasks`:                                                            `{"jobs":[{"job":{"id":"j","alternatives":[{"min":4,"tasks":[{"name":"t","shape":{}}]}]}}]}`,
	`j: share is -1; it must be from 0 to 1152921504606846976`:                                              `{"jobs":[{"job":{"id":"j","alternatives":[{"min":1,"tasks":[{"name":"t","shape":{"need":{"devices":1,"share":-1}}}]}]}}]}`,
	`j: 1073741824 layers of 1073741825 bytes are more bytes than are supported`:                            `{"jobs":[{"job":{"id":"j","alternatives":[{"min":1,"tasks":[{"name":"t","shape":{"need":{"layers":{"total":1073741824,"bytes":1073741825}}}}]}]}}]}`,
	`j: the sizes are of 2 layers of at most 5 bytes, but there are 3 of at most 5`:                         `{"jobs":[{"job":{"id":"j","alternatives":[{"min":1,"tasks":[{"name":"t","shape":{"need":{"layers":{"total":3,"bytes":5,"sizes":[{"count":2,"bytes":5}]}}}}]}]}}]}`,
	`j: the sizes are of 3 layers of at most 4 bytes, but there are 3 of at most 5`:                         `{"jobs":[{"job":{"id":"j","alternatives":[{"min":1,"tasks":[{"name":"t","shape":{"need":{"layers":{"total":3,"bytes":5,"sizes":[{"count":3,"bytes":4}]}}}}]}]}}]}`,
	`j: 0 layers of 1 bytes cannot be among 3 layers`:                                                       `{"jobs":[{"job":{"id":"j","alternatives":[{"min":1,"tasks":[{"name":"t","shape":{"need":{"layers":{"total":3,"bytes":5,"sizes":[{"bytes":1}]}}}}]}]}}]}`,
	`j: the displaced jobs are not sorted`:                                                                  `{"jobs":[{"job":{"id":"j","displaced":["b","a"],"alternatives":[{"min":1,"tasks":[{"name":"t","shape":{}}]}]}}]}`,
	`j: the sum of cpu over all requests is too large`:                                                      `{"jobs":[{"job":{"id":"j","alternatives":[` + nineTasks + `]}}]}`,
	`task j/t: its job has no such task`:                                                                    `{"tasks":[{"task":{"job":"j","alternative":-1,"name":"t"}}]}`,
	`task j/t is listed twice`:                                                                              `{"tasks":[{"task":{"job":"j","name":"t"}},{"task":{"job":"j","name":"t"}}]}`,
	`task j/t: it cannot be Bound on node ""`:                                                               withTask(`"status":"Bound"`),
	`task j/t: it cannot be Pending on node "n"`:                                                            withTask(`"status":"Pending","node":"n"`),
	`task j/t: no node "m"`:                                                                                 withTask(`"status":"Bound","node":"m"`),
	`task j/t: node "n" has no device "x"`:                                                                  withTask(`"status":"Bound","node":"n","devices":[{"device":"x"}]`),
	`task j/t: device "g" is held twice`:                                                                    withTask(`"status":"Bound","node":"n","devices":[{"device":"g"},{"device":"g"}]`),
	`task j/t: device "g": milli is -1000; it must be from 0 to 1152921504606846976`:                        withTask(`"status":"Bound","node":"n","devices":[{"device":"g","milli":-1000}]`),
	`task j/t: it is Pending, and cannot hold anything`:                                                     withTask(`"status":"Pending","devices":[{"device":"g"}]`),
	`task j/t: it is Bound, and cannot be evicted or have a landing`:                                        withTask(`"status":"Bound","node":"n","landing":{"node":"n"}`),
	`task j/t: it is not evicted, and cannot have fields of an eviction (for, at, overdue)`:                 withTask(`"status":"Bound","node":"n","for":"k"`),
	`task j/t is listed as unseen without a node, or twice`:                                                 `{"unseen":[{"task":{"job":"j","name":"t"}}]}`,
	`task j/t is listed as unknown, but it is known`:                                                        `{` + aJob + `,"unseen":[{"task":{"job":"j","name":"t"},"node":"n"}]}`,
	`json: cannot unmarshal string into Go struct field Snapshot.now of type int64`:                         `{"now":"soon"}`,
	`unknown status "Lost"; the names are Pending, Bound, Nominated, Releasing, Assumed, Succeeded, Failed`: withTask(`"status":"Lost"`),
}

// nineTasks are tasks that together request more than an int64 holds.
var nineTasks = func() string {
	tasks := ""
	for i := range 9 {
		tasks += fmt.Sprintf(`,{"name":"%d","shape":{"resources":{"cpu":1152921504606846976}}}`, i)
	}
	return `{"min":1,"tasks":[` + tasks[1:] + `]}`
}()

func TestInvalidSnapshotsAreRejected(t *testing.T) {
	for want, text := range invalidSnapshots {
		got := "no error"
		if _, err := readSnapshot([]byte(text)); err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// A State on which sessions have run today can be read from its snapshot.
func TestSnapshotOfToday(t *testing.T) {
	s := cluster.NewState()
	now := time.Date(2100, 1, 2, 3, 4, 5, 6, time.UTC).UnixNano()
	for _, c := range []cluster.Change{cluster.QueuePut{Queue: cluster.Queue{Name: "q"}}, cluster.SessionOpened{Now: now}} {
		if err := s.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	again, err := s.Snapshot().State()
	if err != nil {
		t.Fatal(err)
	}
	if again.Now() != now || again.Digest() != s.Digest() {
		t.Errorf("the time is %d, want %d", again.Now(), now)
	}
}
