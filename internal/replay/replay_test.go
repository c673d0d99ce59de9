package replay

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/backfill"
	"github.com/berth-project/berth/plugins/standard"
	"github.com/google/go-cmp/cmp"
)

func newEngine(t *testing.T, policy string) *engine.Engine {
	t.Helper()
	return engineWithout(t, policy, "")
}

// withoutBackfill returns an engine with the policy that earmarks no room, so that all that differs is
// how tasks are packed.
func withoutBackfill(t *testing.T, policy string) *engine.Engine {
	t.Helper()
	return engineWithout(t, policy, backfill.Name)
}

func engineWithout(t *testing.T, policy, plugin string) *engine.Engine {
	t.Helper()
	profile, err := standard.Pack(standard.Profile(), policy)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(standard.Registry(), slices.DeleteFunc(profile, func(c engine.PluginConfig) bool { return c.Name == plugin }))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func run(t *testing.T, tr *Trace, o Options) *Run {
	t.Helper()
	if o.Engine == nil {
		o.Engine = newEngine(t, "best-fit")
	}
	var ticks time.Duration
	o.Clock = func() time.Duration { ticks += time.Microsecond; return ticks }
	r, err := Replay(context.Background(), tr, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const second = int64(time.Second)

// job returns a job that requests whole devices.
func job(name string, arrival, runTime int64, devices int) Job {
	return Job{Name: name, Arrival: arrival * second, RunTime: runTime * second, Request: Request{CPU: 1000, Devices: devices}}
}

func TestJobsWaitAndEnd(t *testing.T) {
	tr := &Trace{Name: "t", Nodes: Machines(1, 4, "L4", 16, 64), Jobs: []Job{
		job("a", 0, 10, 4), // runs from 0 to 10
		job("b", 1, 4, 4),  // waits for a, runs from 10 to 14
		job("c", 2, 4, 1),  // waits for b
		job("d", 20, 5, 2), // runs from 20 to 25
		job("e", 21, 0, 3), // never fits beside d before 25; does not end
		job("f", 30, 1, 0), // needs no device
	}}
	r := run(t, tr, Options{Points: 100})
	var waited []int64
	for _, w := range r.Waits {
		waited = append(waited, w.Time/second)
	}
	if diff := cmp.Diff([]int64{0, 9, 12, 0, 4, 0}, waited); diff != "" {
		t.Error(diff)
	}
	// The devices that are allocated, multiplied by seconds, of 4 devices in 30 seconds.
	held := 4*10 + 4*4 + 1*4 + 2*5 + 3*5
	if want := float64(held) / (4 * 30); r.Mean < want-1e-9 || r.Mean > want+1e-9 {
		t.Errorf("the mean is %v, want %v", r.Mean, want)
	}
	if r.Failed != 0 || r.Milli != 3000 || r.Arrived != 6 || len(r.Points) == 0 {
		t.Errorf("%+v", r)
	}
}

func TestDroppedJobsAreNotTriedAgain(t *testing.T) {
	tr := &Trace{Nodes: Machines(1, 4, "L4", 16, 64), Jobs: []Job{job("a", 0, 5, 3), job("b", 1, 5, 2), job("c", 7, 5, 1)}}
	r := run(t, tr, Options{Drop: true})
	if r.Failed != 1 || r.FailedBy[2] != 1 || len(r.Waits) != 2 || r.Milli != 1000 {
		t.Errorf("%+v", r)
	}
}

func TestPendingJobsAreCounted(t *testing.T) {
	tr := &Trace{Nodes: Machines(1, 4, "L4", 16, 64), Jobs: []Job{job("a", 0, 0, 3), job("b", 1, 5, 2)}}
	r := run(t, tr, Options{Until: 11 * second})
	if r.Failed != 1 || len(r.Waits) != 2 || !r.Waits[1].Pending || r.Waits[1].Time != 10*second {
		t.Errorf("%+v", r)
	}
}

func TestJobsOutOfOrder(t *testing.T) {
	tr := &Trace{Nodes: Machines(1, 4, "L4", 16, 64), Jobs: []Job{job("a", 5, 1, 1), job("b", 1, 5, 2)}}
	if _, err := Replay(context.Background(), tr, Options{Engine: newEngine(t, "fgd"), Clock: func() time.Duration { return 0 }}); err == nil || !strings.Contains(err.Error(), "job b") {
		t.Errorf("%v", err)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	tr := &Trace{Nodes: Machines(1, 4, "L4", 16, 64), Jobs: []Job{job("a", 0, 5, 1)}}
	if _, err := Replay(ctx, tr, Options{Engine: newEngine(t, "random"), Clock: func() time.Duration { return 0 }}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestPolicies replays a random course with every policy. A decision of the index that differs from
// a scan fails the replay, and equal input gives equal output.
func TestPolicies(t *testing.T) {
	s := Synth{Nodes: Machines(6, 8, "L4", 64, 256), Jobs: DefaultRequests(8), Load: 0.9, Mean: time.Hour, Sigma: 1, Length: 20 * time.Hour}
	for _, policy := range standard.Policies() {
		t.Run(policy, func(t *testing.T) {
			tr := s.Trace(1)
			a := run(t, tr, Options{Engine: newEngine(t, policy), CheckEvery: 2})
			b := run(t, tr, Options{Engine: newEngine(t, policy)})
			if diff := cmp.Diff(a.Waits, b.Waits); diff != "" {
				t.Error(diff)
			}
			if a.State.Digest() != b.State.Digest() || a.Checked != len(tr.Jobs)/2 || a.Mean < 0.3 || a.Mean > 1 {
				t.Errorf("%d checked, mean %v", a.Checked, a.Mean)
			}
		})
	}
}

// fickle gives a node another score in each call, so that what the index remembers is wrong.
type fickle struct{ calls int }

func (*fickle) Name() string { return "Fickle" }

func (p *fickle) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddShapeScore(nil, func(*cluster.Shape, *cluster.Node) float64 {
		p.calls++
		return float64(p.calls * 37 % 100)
	})
}

// TestCheckFindsDifference: a checked decision that differs from a scan of all nodes fails the
// replay with the job and the plugin. Without checks, nothing is noticed.
func TestCheckFindsDifference(t *testing.T) {
	tr := &Trace{Name: "t", Nodes: Machines(20, 8, "L4", 64, 256)}
	for i := range 40 {
		tr.Jobs = append(tr.Jobs, job(fmt.Sprintf("j%02d", i), int64(i), 0, 1))
	}
	replay := func(every int) (*Run, error) {
		registry := standard.Registry()
		err := registry.RegisterPluginBuilder("Fickle", engine.WithoutArguments(func() engine.Plugin { return &fickle{} }))
		if err != nil {
			t.Fatal(err)
		}
		e, err := engine.New(registry, append(standard.Profile(), engine.PluginConfig{Name: "Fickle", Weight: 100}))
		if err != nil {
			t.Fatal(err)
		}
		return Replay(context.Background(), tr, Options{Engine: e, CheckEvery: every, Clock: func() time.Duration { return 0 }})
	}
	if r, err := replay(0); err != nil || r.Arrived != 40 || r.Checked != 0 {
		t.Errorf("without checks: %v", err)
	}
	_, err := replay(5)
	if err == nil || !strings.Contains(err.Error(), "job j") || !strings.Contains(err.Error(), "plugin Fickle") {
		t.Errorf("with checks: %v", err)
	}
}

func TestSynth(t *testing.T) {
	s := Synth{Nodes: Machines(10, 8, "L4", 64, 256), Jobs: DefaultRequests(8), Load: 0.5, Mean: time.Hour, Sigma: 1.2, Length: 2000 * time.Hour}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	tr := s.Trace(7)
	var offered, length float64
	for _, j := range tr.Jobs {
		offered += float64(j.Milli()) / 1000 * float64(j.RunTime)
		length += float64(j.RunTime) / float64(len(tr.Jobs))
	}
	if load := offered / 80 / float64(s.Length); load < 0.47 || load > 0.53 {
		t.Errorf("the load is %v", load)
	}
	if length < 0.95*float64(time.Hour) || length > 1.05*float64(time.Hour) {
		t.Errorf("the mean run time is %v", time.Duration(length))
	}
	if diff := cmp.Diff(tr, s.Trace(7)); diff != "" {
		t.Error("the same seed gives another trace")
	}
	for _, bad := range []func(*Synth){
		func(s *Synth) { s.Load = 0 }, func(s *Synth) { s.Mean = 0 }, func(s *Synth) { s.Sigma = -1 }, func(s *Synth) { s.Nodes = nil },
		func(s *Synth) { s.Jobs = []Job{{}} }, func(s *Synth) { s.Length = 1 << 62 },
	} {
		b := s
		if bad(&b); b.Check() == nil {
			t.Errorf("%+v is accepted", b)
		}
	}
}

func TestOpenb(t *testing.T) {
	nodes := "sn,cpu_milli,memory_mib,gpu,model\nn-0,32000,131072,2,T4\nn-1,96000,786432,8,G2\n"
	tasks := "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\np-1,6000,1024,1,460,,LS\np-0,12000,16384,1,1000,T4|G2,BE\np-2,4000,8,0,0,,LS\n"
	tr, err := ReadOpenb(strings.NewReader(nodes), strings.NewReader(tasks), "nodes.csv", "dir/tasks.csv")
	if err != nil {
		t.Fatal(err)
	}
	want := []Job{
		{Name: "p-1", Request: Request{CPU: 6000, Memory: 1 << 30, Devices: 1, Share: 460}},
		{Name: "p-0", Request: Request{CPU: 12000, Memory: 16 << 30, Devices: 1, Share: 1000, Products: []string{"G2", "T4"}}},
		{Name: "p-2", Request: Request{CPU: 4000, Memory: 8 << 20}},
	}
	if diff := cmp.Diff(want, tr.Jobs); diff != "" {
		t.Error(diff)
	}
	if tr.Name != "tasks" || tr.Milli() != 10_000 {
		t.Errorf("%s, %d", tr.Name, tr.Milli())
	}
	one := tr.Openb(42, false)
	var sum int64
	for i, j := range one.Jobs {
		sum += j.Milli()
		if j.Arrival != int64(i)*second {
			t.Errorf("job %d arrives at %d", i, j.Arrival)
		}
	}
	if sum > 13_000 || sum < 12_000 {
		t.Errorf("%d thousandths of devices arrive", sum)
	}
	if cmp.Equal(one.Jobs, tr.Openb(43, false).Jobs) || !cmp.Equal(one, tr.Openb(42, false)) {
		t.Error("the seed does not select the trace")
	}
	n := tr.Times(3)
	if len(n.Nodes) != 6 || n.Len() != 9 || n.Milli() != 30_000 || &n.Jobs[0] != &tr.Jobs[0] {
		t.Errorf("%+v", n)
	}
	var names []string
	for i := range n.Len() {
		names = append(names, n.jobName(i))
		if n.Job(i) != &tr.Jobs[i/3] {
			t.Errorf("job %d is not a copy of job %d", i, i/3)
		}
	}
	if want := tr.Jobs[2].Name + "-002"; names[8] != want || len(slices.Compact(names)) != 9 {
		t.Errorf("the jobs are named %v, and the last one should be %s", names, want)
	}
	for i, r := range n.requests() {
		if r.Count != 3*tr.requests()[i].Count {
			t.Errorf("%+v is requested by the copies of %d tasks", r, tr.requests()[i].Count)
		}
	}
}

func TestLayouts(t *testing.T) {
	nodes := File{Name: "nodes.csv", Reader: nil}
	own := "name,cpu,memory_gib,devices,product,device_memory_gib,labels\na,8.5,64,4,L4,24,rack=r1;zone=z\n"
	tests := map[Layout]struct {
		nodes, jobs string
		want        []Job
		leftOut     int
	}{
		LayoutBerth: {own, "name,queue,arrival_s,duration_s,tasks,cpu,memory_gib,devices,share,products,priority\nb,q,7.5,60,2,1,4,1,0.25,L4|A10,3\na,,5,,,0.5,,,,,\n", []Job{
			{Name: "a", Request: Request{CPU: 500}},
			{Name: "b", Queue: "q", Arrival: 5 * second / 2, RunTime: 60 * second, Tasks: 2, Priority: 3, Request: Request{CPU: 1000, Memory: 4 << 30, Devices: 1, Share: 250, Products: []string{"A10", "L4"}}},
		}, 0},
		LayoutAlibaba: {"m1,V100,96,512,8\nm2,CPU,96,512,\n", "j1,worker,2,Terminated,100.0,160.0,600.0,29.3,50.0,V100\nj1,ps,1,Failed,,,600,1,,\nj2,tf,1,Terminated,90,95,1200,10,200,MISC\n", []Job{
			{Name: "j2/tf", RunTime: 5 * second, Tasks: 1, Request: Request{CPU: 12000, Memory: 10 << 30, Devices: 2}},
			{Name: "j1/worker", Arrival: 10 * second, RunTime: 60 * second, Tasks: 2, Request: Request{CPU: 6000, Memory: 31460635443, Devices: 1, Share: 500, Products: []string{"V100"}}},
		}, 1},
		LayoutHelios: {own, "job_id,user,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue,vc\n7,u,16,64,2,COMPLETED,2020-04-01 00:00:09,2020-04-01 00:00:10,,30,0,vcA\n8,u,1,4,1,FAILED,2020-04-01 00:00:19,,,0,0,vcA\n", []Job{
			{Name: "7", Queue: "vcA", RunTime: 30 * second, Tasks: 2, Request: Request{CPU: 32000, Devices: 8}},
		}, 1},
		LayoutPhilly: {"machineId, number of GPUs, single GPU mem\nm0, 8, 24GB\n", `[{"status":"Pass","vc":"ee9e8c","jobid":"j1","submitted_time":"2017-10-04 21:34:04","attempts":[
			{"start_time":"2017-10-04 21:35:00","end_time":"2017-10-04 21:36:00","detail":[{"ip":"m0","gpus":["gpu0","gpu1"]},{"ip":"m1","gpus":["gpu0","gpu1"]}]}]},
			{"vc":"v","jobid":"j2","submitted_time":"2017-10-04 21:34:05","attempts":[]}]`, []Job{
			{Name: "j1", Queue: "ee9e8c", RunTime: 60 * second, Tasks: 2, Request: Request{Devices: 2}},
		}, 1},
	}
	for layout, tt := range tests {
		t.Run(string(layout), func(t *testing.T) {
			nodes.Reader = strings.NewReader(tt.nodes)
			tr, leftOut, err := Read(layout, nodes, File{"jobs.csv", strings.NewReader(tt.jobs)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, tr.Jobs); diff != "" || leftOut != tt.leftOut {
				t.Errorf("%d are left out\n%s", leftOut, diff)
			}
			r := run(t, tr, Options{})
			if r.Arrived != len(tr.Jobs) {
				t.Errorf("%d arrived", r.Arrived)
			}
		})
	}
}

func TestBadTables(t *testing.T) {
	nodes := "name,cpu,devices\na,8,4\n"
	jobs := "name,arrival_s,cpu,devices\nj,0,1,1\n"
	for name, tt := range map[string]struct{ nodes, jobs, want string }{
		"empty":         {"", jobs, "nodes.csv: the file is empty"},
		"no column":     {"name,cpu\na,1\n", jobs, "nodes.csv:1: the column devices is missing"},
		"no number":     {nodes, "name,arrival_s,cpu,devices\nj,soon,1,1\n", `jobs.csv:2: arrival_s: "soon" is not a number`},
		"negative":      {nodes, "name,arrival_s,cpu,devices\nj,0,1,1\nk,0,-1,1\n", `jobs.csv:3: cpu: "-1" is not a number`},
		"large":         {nodes, "name,arrival_s,cpu,devices\nj,1e300,1,1\n", "arrival_s"},
		"NaN":           {nodes, "name,arrival_s,cpu,devices\nj,NaN,1,1\n", "arrival_s"},
		"large share":   {nodes, "name,arrival_s,cpu,devices,share\nj,0,1,1,1.5\n", "share"},
		"shares":        {nodes, "name,arrival_s,cpu,devices,share\nj,0,1,2,0.5\n", "a task with a share has one device"},
		"labels":        {"name,cpu,devices,labels\na,8,4,rack\n", jobs, "want labels such as"},
		"open quote":    {nodes, "name,arrival_s,cpu,devices\n\"j,0,1,1\n", "jobs.csv"},
		"two of a name": {nodes + "a,8,4\n", jobs, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			tr, _, err := Read(LayoutBerth, File{"nodes.csv", strings.NewReader(tt.nodes)}, File{"jobs.csv", strings.NewReader(tt.jobs)})
			if err == nil {
				_, err = tr.State()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := ReadOpenb(strings.NewReader("sn,cpu_milli,memory_mib,gpu,model\n"), strings.NewReader("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,2,500\n"), "n", "t"); err == nil {
		t.Error("a share of two devices is accepted")
	}
}

func TestSummaryAndPlot(t *testing.T) {
	tr := &Trace{Name: "a < b", Nodes: Machines(2, 4, "L4", 16, 64), Jobs: []Job{job("a", 0, 10, 4), job("b", 1, 4, 4), job("c", 2, 4, 1)}}
	r := run(t, tr, Options{Points: 3})
	s := Summarize(tr, "best-fit", []int64{1}, []*Run{r}, []*Trace{tr}, true)
	if s.Waiting.All.Jobs != 3 || s.Waiting.WholeNode.Jobs != 2 || s.Nodes != 2 || s.Devices != 8 || s.Decisions.PerSecond == 0 || s.Decisions.Max < s.Decisions.P50 {
		t.Errorf("%+v", s)
	}
	var b strings.Builder
	if err := Plot(&b, []*Result{s, {Policy: "empty"}}); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(b.String()))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
	}
	if n := strings.Count(b.String(), "<polyline"); n < 3 {
		t.Errorf("%d lines", n)
	}
}

func TestGangsStartTogether(t *testing.T) {
	gang := job("gang", 1, 10, 4)
	gang.Tasks = 2
	tr := &Trace{Nodes: Machines(2, 4, "L4", 16, 64), Jobs: []Job{job("a", 0, 5, 1), gang}}
	r := run(t, tr, Options{Until: 20 * second})
	if len(r.Waits) != 2 || r.Waits[1].Time != 4*second || r.FailedBy[4] != 0 {
		t.Errorf("%+v", r.Waits)
	}
	if got := r.Mean * 8 * 20; got < 5+80-1e-6 || got > 5+80+1e-6 {
		t.Errorf("%v device-seconds", got)
	}
}

// TestSteadyState: tasks with all devices of a node wait less with fill-value than with the other
// policies, and as much is allocated.
func TestSteadyState(t *testing.T) {
	s := Synth{Nodes: Machines(40, 8, "L4", 128, 1024), Jobs: DefaultRequests(8), Load: 0.95, Mean: 4 * time.Hour, Sigma: 1.2, Length: 10 * 24 * time.Hour}
	measure := func(policy string) (allocated, waited float64) {
		for seed := range int64(2) {
			tr := s.Trace(seed)
			r := run(t, tr, Options{Engine: withoutBackfill(t, policy), WarmUp: int64(s.Length) / 10, Until: int64(s.Length)})
			allocated += r.Mean
			for _, w := range r.Waits {
				if tr.Jobs[w.Job].Devices == 8 {
					waited += float64(w.Time)
				}
			}
		}
		return allocated, waited
	}
	allocated, waited := measure("fill-value")
	for _, policy := range []string{"best-fit", "fgd"} {
		a, w := measure(policy)
		t.Logf("%s: %.4f of what fill-value allocates, %.3f of its waiting", policy, a/allocated, w/waited)
		if allocated < 0.999*a || waited > 0.9*w {
			t.Errorf("allocated %v with fill-value, %v with %s; waited %v and %v", allocated, a, policy, waited, w)
		}
	}
}

// TestKnownRunTimes: whether the engine knows run times makes a difference for earmarked room.
func TestKnownRunTimes(t *testing.T) {
	s := Synth{Nodes: Machines(8, 8, "L4", 128, 1024), Jobs: DefaultRequests(8), Load: 0.98, Mean: 4 * time.Hour, Sigma: 1.2, Length: 3 * 24 * time.Hour}
	waited := func(known bool) (sum int64) {
		for _, w := range run(t, s.Trace(1), Options{Engine: newEngine(t, "best-fit"), Until: int64(s.Length), KnownRunTimes: known}).Waits {
			sum += w.Time
		}
		return sum
	}
	if known, unknown := waited(true), waited(false); known == unknown {
		t.Errorf("jobs wait %v whether run times are known or not", time.Duration(known))
	}
}
