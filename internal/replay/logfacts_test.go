package replay

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/plugins/standard"
	"github.com/google/go-cmp/cmp"
)

// logBuilder writes a log. Its times are in seconds.
type logBuilder struct {
	bytes.Buffer
	attempts map[cluster.TaskRef]uint64
}

func (b *logBuilder) add(changes ...cluster.Change) {
	for _, c := range changes {
		if g, ok := c.(cluster.JobGone); ok {
			delete(b.attempts, cluster.TaskRef{Job: g.Job, Name: "t-0"})
		}
		text, err := cluster.Encode(c)
		if err != nil {
			panic(err)
		}
		b.Write(append(text, '\n'))
	}
}

// at writes facts and the session that follows them.
func (b *logBuilder) at(second int64, facts ...cluster.Change) *logBuilder {
	b.add(append(facts, cluster.SessionOpened{Now: (1000 + second) * int64(time.Second)})...)
	return b
}

func ref(job string) cluster.TaskRef { return cluster.TaskRef{Job: "job/" + job, Name: "t-0"} }

func (b *logBuilder) attempt(job string) uint64 {
	if b.attempts == nil {
		b.attempts = map[cluster.TaskRef]uint64{}
	}
	b.attempts[ref(job)]++
	return b.attempts[ref(job)]
}

// assign writes a decision and its confirmation.
func (b *logBuilder) assign(job, node string, devices ...int) {
	var held []cluster.Holding
	for _, d := range devices {
		held = append(held, cluster.Holding{Device: fmt.Sprintf("%s-%d", node, d), Milli: 1000, Memory: 24 << 30})
	}
	b.add(cluster.Decided{Changes: []cluster.Change{cluster.Assign{Task: ref(job), Node: node, Devices: held, Attempt: b.attempt(job)}}}, cluster.TaskSeen{Task: ref(job), Node: node})
}

func (b *logBuilder) evict(job, by string) {
	b.add(cluster.Decided{Changes: []cluster.Change{cluster.Evict{Task: ref(job), For: "job/" + by, Attempt: b.attempt(job)}}})
}

func gpus(name string, n int) cluster.NodePut {
	node := enginetest.Node(name).CPU(32, "256Gi").GPUs(n, "L4", "24Gi").Build()
	for i := range node.Devices {
		node.Devices[i].UUID = fmt.Sprintf("%s-%d", name, i)
	}
	return cluster.NodePut{Node: *node}
}

func put(b *enginetest.JobBuilder) cluster.JobPut {
	j := b.Build()
	for _, t := range j.Alternatives[0].Tasks {
		if t.Name = fmt.Sprint("t-", t.Index); t.Job != nil {
			t.Job = nil
		}
	}
	return cluster.JobPut{Job: *j}
}

func gone(job string) cluster.JobGone { return cluster.JobGone{Job: "job/" + job} }

// course replays the log and returns each decision with its second.
func courseOf(t *testing.T, log string, profile engine.Profile) (*LogRun, []string) {
	t.Helper()
	if profile == nil {
		profile = standard.Profile()
	}
	e, err := engine.New(standard.Registry(), profile)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	run, err := record(t, log).Replay(context.Background(), LogOptions{Engine: e, CheckEvery: 1, Clock: func() time.Duration { return 0 }, Decided: func(now int64, decisions []engine.Decision) {
		for i := range decisions {
			d := &decisions[i]
			out = append(out, fmt.Sprintf("%d %s %s %s", now/int64(time.Second)-1000, d.Action, d.Task.ID(), d.Node))
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	return run, out
}

func waitsOf(r *LogRun) []string {
	var out []string
	for _, w := range r.Waits {
		text := fmt.Sprint(w.Time / int64(time.Second))
		if w.Pending {
			text += " without effect"
		}
		out = append(out, text)
	}
	return out
}

// evictionLog has one task that is evicted after 10 of 20 seconds.
func evictionLog(nodes ...cluster.Change) string {
	b := &logBuilder{}
	b.at(0, append(nodes, put(enginetest.Job("low").Devices(1).Preemptible()))...)
	b.assign("low", "a", 0)
	b.at(10, put(enginetest.Job("high").Devices(1).Priority(10)))
	b.evict("low", "high")
	b.at(12, cluster.TaskSeen{Task: ref("low")})
	b.assign("high", "a", 0)
	b.at(32, gone("high"))
	b.assign("low", "a", 0)
	b.at(42, gone("low")).at(60)
	return b.String()
}

// TestRunTimesAddUp: a task that was evicted in the log needs the sum of what it ran.
func TestRunTimesAddUp(t *testing.T) {
	run, course := courseOf(t, evictionLog(gpus("a", 1)), nil)
	want := []string{"0 Bind job/low/t-0 a", "10 Evict job/low/t-0 a", "10 Nominate job/high/t-0 a", "10 Bind job/high/t-0 a", "30 Bind job/low/t-0 a"}
	if diff := cmp.Diff(want, course); diff != "" {
		t.Error(diff)
	}
	if run.Evicted != 1 || run.Failed != 0 || !near(run.Mean, 40.0/60) {
		t.Errorf("%+v", run)
	}
	recorded := record(t, evictionLog(gpus("a", 1))).Run
	if diff := cmp.Diff([]string{"0", "2"}, waitsOf(recorded)); diff != "" || recorded.Evicted != 1 {
		t.Errorf("%d evicted\n%s", recorded.Evicted, diff)
	}
	// With room for both, nothing is evicted, and the task runs for 20 seconds.
	run, course = courseOf(t, evictionLog(gpus("a", 1), gpus("b", 1)), nil)
	if diff := cmp.Diff([]string{"0 Bind job/low/t-0 a", "10 Bind job/high/t-0 b"}, course); diff != "" || !near(run.Mean, 40.0/120) {
		t.Errorf("mean %v\n%s", run.Mean, diff)
	}
}

// TestRemovedWhilePending: users remove jobs that wait. A replay removes them at the same time, unless it
// has placed them and their run time is known.
func TestRemovedWhilePending(t *testing.T) {
	b := &logBuilder{}
	b.at(0, gpus("a", 2), put(enginetest.Job("x").Devices(1)))
	b.at(5, put(enginetest.Job("large").Devices(3)), put(enginetest.Job("y").Devices(1)))
	b.assign("y", "a", 0)
	b.at(7, gone("x")) // x could have been placed
	b.at(9, gone("large")).at(15, gone("y")).at(20)
	recorded := record(t, b.String()).Run
	if diff := cmp.Diff([]string{"0", "7 without effect", "4 without effect"}, waitsOf(recorded)); diff != "" || recorded.Failed != 2 || recorded.FailedBy[3] != 1 {
		t.Errorf("%+v\n%s", recorded, diff)
	}
	run, course := courseOf(t, b.String(), nil)
	if diff := cmp.Diff([]string{"0 Bind job/x/t-0 a", "5 Bind job/y/t-0 a"}, course); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"0", "0", "4 without effect"}, waitsOf(run)); diff != "" || run.Failed != 1 || !near(run.Mean, (7.0+10)/40) {
		t.Errorf("%+v\n%s", run, diff)
	}
}

// TestRunsOn: a job that has not ended when the log does runs on, unless its spec has a run time.
func TestRunsOn(t *testing.T) {
	b := &logBuilder{}
	b.at(0, gpus("a", 1), put(enginetest.Job("x").Devices(1)))
	b.assign("x", "a", 0)
	b.at(5, put(enginetest.Job("y").Devices(1).RunFor(3*second)), gpus("b", 1)).at(20)
	r := record(t, b.String())
	if r.Unknown != 1 || r.Run.Failed != 1 {
		t.Errorf("%d unknown, %d failed", r.Unknown, r.Run.Failed)
	}
	run, _ := courseOf(t, b.String(), nil)
	if want := (20.0 + 3) / (20 + 15); run.Failed != 0 || !near(run.Mean, want) {
		t.Errorf("mean %v, want %v", run.Mean, want)
	}
}

// TestNodesOfALog: a node is added, cordoned and lost as in the log. A task on a node that is lost runs
// the rest elsewhere.
func TestNodesOfALog(t *testing.T) {
	cordoned := cluster.Phase("Unschedulable")
	b := &logBuilder{}
	b.at(0, gpus("a", 1), put(enginetest.Job("x").Devices(1)))
	b.assign("x", "a", 0)
	b.at(4, cluster.NodeGone{Name: "a"}, cluster.TaskSeen{Task: ref("x")})
	b.at(6, gpus("b", 1))
	b.assign("x", "b", 0)
	b.at(7, cluster.NodeSeen{Name: "b", Phase: &cordoned}, put(enginetest.Job("y").Devices(1)), gpus("c", 1))
	b.assign("y", "c", 0)
	b.at(12, gone("x")).at(13, gone("y")).at(20)
	_, course := courseOf(t, b.String(), nil)
	want := []string{"0 Bind job/x/t-0 a", "6 Bind job/x/t-0 b", "7 Bind job/y/t-0 c"}
	if diff := cmp.Diff(want, course); diff != "" {
		t.Error(diff)
	}
}

// TestSameIDAgain: a later job has the ID of a job that still waits in the replay.
func TestSameIDAgain(t *testing.T) {
	b := &logBuilder{}
	b.at(0, gpus("a", 2), put(enginetest.Job("block").Devices(1)), put(enginetest.Job("x").Devices(2)))
	b.assign("x", "a", 0, 1)
	b.at(5, gone("x"))
	b.assign("block", "a", 0)
	b.at(10, gone("block")).at(11, put(enginetest.Job("x").Devices(1)))
	b.assign("x", "a", 0)
	b.at(14, gone("x")).at(30)
	_, course := courseOf(t, b.String(), nil)
	// block runs for 5 seconds, and x for 5 after it. The later x arrives at 11, after the first has ended.
	want := []string{"0 Bind job/block/t-0 a", "5 Bind job/x/t-0 a", "11 Bind job/x/t-0 a"}
	if diff := cmp.Diff(want, course); diff != "" {
		t.Error(diff)
	}
	b = &logBuilder{}
	b.at(0, gpus("a", 2), put(enginetest.Job("block").Devices(1)), put(enginetest.Job("x").Devices(2)))
	b.assign("x", "a", 0, 1)
	b.at(2, gone("x")).at(3, put(enginetest.Job("x").Devices(1)))
	b.assign("x", "a", 0)
	b.at(4, gone("x")).at(5)
	b.assign("block", "a", 0)
	b.at(30, gone("block")).at(60)
	_, course = courseOf(t, b.String(), nil)
	want = []string{"0 Bind job/block/t-0 a", "3 Bind job/x~2/t-0 a", "25 Bind job/x/t-0 a"}
	if diff := cmp.Diff(want, course); diff != "" {
		t.Error(diff)
	}
}

// TestOpenJobs: tasks of an open job arrive and end one by one, and another scheduler has placed a task.
func TestOpenJobs(t *testing.T) {
	shape := put(enginetest.Job("s").Devices(1)).Job.Alternatives[0].Tasks[0].Shape
	task := func(name string) cluster.TaskPut {
		return cluster.TaskPut{Job: "job/pods", Task: cluster.Task{Name: name, UID: "uid-" + name, Shape: shape}}
	}
	of := func(name string) cluster.TaskRef { return cluster.TaskRef{Job: "job/pods", Name: name} }
	b := &logBuilder{}
	b.at(0, gpus("a", 2), cluster.JobPut{Job: cluster.Job{ID: "job/pods", Open: true, Alternatives: []cluster.Alternative{{Min: 1}}}}, task("p"), task("q"), task("r"),
		cluster.TaskSeen{Task: of("q"), UID: "uid-q", Node: "a", Devices: []cluster.Holding{{Device: "a-1", Milli: 1000, Memory: 24 << 30}}})
	b.add(cluster.Decided{Changes: []cluster.Change{cluster.Assign{Task: of("p"), UID: "uid-p", Node: "a", Devices: []cluster.Holding{{Device: "a-0", Milli: 1000, Memory: 24 << 30}}, Attempt: 1}}},
		cluster.TaskSeen{Task: of("p"), UID: "uid-p", Node: "a"})
	b.at(8, cluster.TaskGone{Task: of("p"), UID: "uid-p", Ended: cluster.Succeeded}) // r waits on
	b.at(9, cluster.TaskGone{Task: of("r"), UID: "uid-r"})
	b.at(12, cluster.TaskGone{Task: of("q"), UID: "uid-q"}).at(13, cluster.TaskGone{Task: of("p"), UID: "uid-p"}, gone("pods")).at(20)
	run, course := courseOf(t, b.String(), nil)
	if diff := cmp.Diff([]string{"0 Bind job/pods/p a", "8 Bind job/pods/r a"}, course); diff != "" {
		t.Error(diff)
	}
	// p runs for 8 seconds, q for 12, and r from 8 until it is removed at 9.
	if want := (8.0 + 12 + 1) / 40; !near(run.Mean, want) || len(run.State.Jobs()) != 0 {
		t.Errorf("mean %v, want %v; %d jobs are left", run.Mean, want, len(run.State.Jobs()))
	}
}

// TestForeignMemoryOfALog: other processes use as much memory as in the log, whatever is placed there.
func TestForeignMemoryOfALog(t *testing.T) {
	memory := func(name string) *enginetest.JobBuilder { return enginetest.Job(name).DeviceMemory(1, "10Gi") }
	b := &logBuilder{}
	b.at(0, gpus("a", 1), put(memory("x")))
	b.at(1, cluster.NodeRead{Name: "a", Free: map[string]cluster.Bytes{"a-0": 19 << 30}}, put(memory("y"))).at(2) // 5 GiB of 24 are foreign
	run, _ := courseOf(t, b.String(), nil)
	if d := &run.State.Node("a").Devices[0]; d.Foreign != 5<<30 || run.Failed != 1 {
		t.Errorf("%d GiB are foreign, %d failed", d.Foreign>>30, run.Failed)
	}
}

func TestDamagedLogs(t *testing.T) {
	good := evictionLog(gpus("a", 1))
	lines := strings.SplitAfter(good, "\n")
	for name, tt := range map[string]struct{ log, want string }{
		"empty":         {"", "dir/log.jsonl: the log has no complete line"},
		"no session":    {lines[0], "dir/log.jsonl: the log has no SessionOpened"},
		"no change":     {good + "rubbish\n", fmt.Sprintf("dir/log.jsonl:%d: not a change", len(lines))},
		"an empty line": {lines[0] + "\n" + good, "dir/log.jsonl:2: not a change"},
		"unknown kind":  {good + `{"kind":"Guess"}` + "\n", fmt.Sprintf("dir/log.jsonl:%d: unknown kind of change", len(lines))},
		"contradiction": {good + lines[3], fmt.Sprintf("dir/log.jsonl:%d: Decided: Assign: ", len(lines))},
		"wrong fact":    {lines[0] + lines[1] + `{"kind":"TaskPut","job":"job/low","task":{"name":"t","shape":{}}}` + "\n" + lines[2], "dir/log.jsonl:4: the fact of line 3: TaskPut: job/low is not open"},
		"early":         {lines[0] + lines[3], "dir/log.jsonl:2: Decided: no session was opened before"},
		"snapshot":      {"{}\n", "dir/log.jsonl:1: not a snapshot"},
	} {
		t.Run(name, func(t *testing.T) {
			o := RecordOptions{}
			if name == "snapshot" {
				o.Snapshot = func([]byte) (*cluster.Snapshot, error) { return nil, fmt.Errorf("not a snapshot") }
			}
			if _, err := Record("dir/log.jsonl", strings.NewReader(tt.log), o); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("the error is %v, want %q", err, tt.want)
			}
		})
	}
}

// TestTornLog cuts a log off at each byte: it is read up to the last complete line.
func TestTornLog(t *testing.T) {
	good := evictionLog(gpus("a", 1))
	whole := record(t, good)
	for size := strings.Index(good, "SessionOpened") + 60; size < len(good); size++ {
		r := record(t, good[:size])
		if cut := good[size-1] != '\n'; r.Cut != cut || r.Run.Arrived > whole.Run.Arrived {
			t.Fatalf("%d bytes: cut %v, want %v", size, r.Cut, cut)
		}
	}
}

// TestLogFromSnapshot begins with a snapshot in which a task runs and another is assigned.
func TestLogFromSnapshot(t *testing.T) {
	s := enginetest.State(enginetest.Node("a").CPU(32, "256Gi").GPUs(2, "L4", "24Gi"), enginetest.Job("x").Devices(1).On("a").Started(995*second), enginetest.Job("y").Devices(1), enginetest.Job("z").Devices(1))
	if err := s.Apply(cluster.SessionOpened{Now: 1000 * second}); err != nil {
		t.Fatal(err)
	}
	y := s.Job("job/y").Tasks()[0].Ref()
	var held []cluster.Holding
	for _, d := range s.Node("a").Devices {
		if d.Use.Leases == 0 {
			held = append(held, cluster.Holding{Device: d.UUID, Milli: 1000, Memory: d.Memory})
		}
	}
	if err := s.Apply(cluster.Decided{Changes: []cluster.Change{cluster.Assign{Task: y, Node: "a", Devices: held, At: 1000 * second, Attempt: 1}}}); err != nil {
		t.Fatal(err)
	}
	b := &logBuilder{}
	b.at(3, gone("x")).at(9, gone("y")).at(20)
	r, err := Record("log", strings.NewReader("snapshot\n"+b.String()), RecordOptions{Snapshot: func(line []byte) (*cluster.Snapshot, error) {
		if string(line) != "snapshot" {
			return nil, nil
		}
		return s.Snapshot(), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the first State of a recording is not changed
		e, err := engine.New(standard.Registry(), standard.Profile())
		if err != nil {
			t.Fatal(err)
		}
		run, err := r.Replay(context.Background(), LogOptions{Engine: e, Clock: func() time.Duration { return 0 }})
		if err != nil {
			t.Fatal(err)
		}
		// x ends at 3, y at 9, and z starts at 3 and runs on.
		if want := (3.0 + 9 + 17) / 40; !near(run.Mean, want) || run.Arrived != 1 || len(run.Waits) != 1 || run.Waits[0].Time != 3*second {
			t.Errorf("mean %v, want %v; %+v", run.Mean, want, run.Waits)
		}
	}
}

// FuzzRecord checks that a log is read and replayed, or an error.
func FuzzRecord(f *testing.F) {
	good := evictionLog(gpus("a", 1), gpus("b", 1))
	f.Add([]byte(good))
	f.Add([]byte(good[:len(good)/2]))
	f.Fuzz(func(t *testing.T, log []byte) {
		r, err := Record("log", bytes.NewReader(log), RecordOptions{})
		if err != nil {
			return
		}
		e, err := engine.New(standard.Registry(), standard.Profile())
		if err != nil {
			t.Fatal(err)
		}
		run, err := r.Replay(context.Background(), LogOptions{Engine: e, Clock: func() time.Duration { return 0 }})
		if err != nil {
			return
		}
		if problem := run.State.Audit(); problem != nil {
			t.Fatal(problem)
		}
	})
}
