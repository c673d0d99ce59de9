package scarceresourceavoidance

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/google/go-cmp/cmp"
)

func built(t testing.TB, args engine.Arguments) *plugin {
	t.Helper()
	p, err := New(args)
	if err != nil {
		t.Fatal(err)
	}
	return p.(*plugin)
}

func shape(b *enginetest.JobBuilder) *cluster.Shape { return b.Build().Tasks()[0].Shape }

func TestScore(t *testing.T) {
	job := enginetest.Job
	plain := engine.Arguments(engine.NoArguments{})
	weighted := enginetest.Arguments(`{"weights": {"nvidia.com/gpu": 3}}`)
	ones := enginetest.Arguments(`{"weights": {"nvidia.com/gpu": 1}}`)
	named := enginetest.Arguments(`{"resources": ["nvidia.com/gpu"]}`)
	fpga := enginetest.Arguments(`{"resources": ["nvidia.com/gpu", "example.com/fpga"]}`)
	cpuTask := shape(job("j").CPU(1000, "1Gi"))
	machine := func() *enginetest.NodeBuilder { return enginetest.Node("n").CPU(8, "64Gi") }
	gpu := func() *enginetest.NodeBuilder { return machine().GPUs(4, "A100", "80Gi").Resource("other", 1) }
	partition := func(s *cluster.Shape) { s.Need = cluster.Need{Devices: 1, Partition: "1g.10gb"} }
	tests := map[string]struct {
		args  engine.Arguments
		shape *cluster.Shape
		node  *enginetest.NodeBuilder
		want  float64
	}{
		"a scarce type and another one":              {plain, cpuTask, gpu(), 50},
		"no scarce type":                             {plain, cpuTask, machine(), 100},
		"nothing but the scarce type":                {plain, cpuTask, machine().GPUs(1, "A100", "80Gi"), 0},
		"spare, but not scarce":                      {plain, cpuTask, machine().Resource("other", 1), 100},
		"the scarce type is requested":               {plain, shape(job("j").CPU(1000, "1Gi").Devices(1)), gpu(), 100},
		"a fraction of the scarce type is requested": {plain, shape(job("j").CPU(1000, "1Gi").Share(1, 100)), gpu(), 100},
		"cpu is not requested":                       {plain, shape(job("j").Resource("memory", 1)), gpu(), 66}, // cpu, other, gpu
		"pods do not count as a type":                {plain, cpuTask, gpu().Resource("pods", 110), 50},
		"a resource with capacity 0 is not offered":  {plain, cpuTask, gpu().Resource("nothing", 0), 50},
		"lost devices are not offered":               {plain, cpuTask, machine().GPUs(1, "A100", "80Gi").With(func(n *cluster.Node) { n.Devices[0].Lost = true }), 100},
		"one device is lost":                         {plain, cpuTask, gpu().With(func(n *cluster.Node) { n.Devices[0].Lost = true }), 50},
		"slices are a type of their own":             {plain, shape(job("j").CPU(1000, "1Gi").Shape(partition)), gpu().Slices(7, "A100", "1g.10gb", "10Gi"), 50},
		"slices are scarce as well":                  {plain, shape(job("j").CPU(1000, "1Gi").Devices(1)), gpu().Slices(7, "A100", "1g.10gb", "10Gi"), 50},
		"slices are not listed":                      {named, shape(job("j").CPU(1000, "1Gi").Devices(1)), gpu().Slices(7, "A100", "1g.10gb", "10Gi"), 100},
		"a resource that the node lacks":             {plain, shape(job("j").CPU(1000, "1Gi").Resource("absent", 1)), gpu(), 50},
		"weights of 1 change nothing":                {ones, cpuTask, gpu(), 50},
		"a weight of 3":                              {weighted, cpuTask, gpu(), 25},
		"an ordinary resource can be scarce":         {fpga, cpuTask, gpu().Resource("example.com/fpga", 1), 33},
		"another resource name":                      {plain, cpuTask, gpu().With(func(n *cluster.Node) { n.DeviceResource = "amd.com/gpu" }), 50},
		"a resource name that is not listed":         {named, cpuTask, gpu().With(func(n *cluster.Node) { n.DeviceResource = "amd.com/gpu" }), 100},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := built(t, tc.args).score(tc.shape, tc.node.Build()); got != tc.want {
				t.Errorf("score %v, want %v", got, tc.want)
			}
		})
	}
}

func TestReserve(t *testing.T) {
	job := enginetest.Job
	p := built(t, enginetest.Arguments(`{"reserve": {"perDevice": {"cpu": 8, "memory": "64Gi"}}}`))
	// Of 48 cores and 320 GiB, 16 cores and 64 GiB are not reserved for the four devices.
	on := func(jobs ...*enginetest.JobBuilder) *cluster.Node {
		parts := []enginetest.Part{enginetest.Node("n").CPU(48, "320Gi").GPUs(4, "A100", "80Gi")}
		for _, j := range jobs {
			parts = append(parts, j.On("n"))
		}
		return enginetest.State(parts...).Node("n")
	}
	cores := func(n int64) engine.Quantity { return engine.Quantity{Value: n * 1000, Unit: engine.Cores} }
	gib := func(n int64) engine.Quantity { return engine.Quantity{Value: n << 30, Unit: engine.Bytes} }
	soon := engine.Wait | engine.Evict
	tests := map[string]struct {
		shape *cluster.Shape
		node  *cluster.Node
		want  *engine.Rejection
	}{
		"exactly what is not reserved":               {shape(job("j").CPU(16000, "64Gi")), on(), nil},
		"a node without devices":                     {shape(job("j").CPU(16000, "64Gi")), enginetest.Node("n").CPU(16, "64Gi").Build(), nil},
		"too few cores even on the empty node":       {shape(job("j").CPU(17000, "1Gi")), on(), &engine.Rejection{Reason: ReservedForDevices, Cure: engine.Grow, Subject: "cpu", Want: cores(17), Have: cores(16)}},
		"too little memory even on the empty node":   {shape(job("j").CPU(1000, "65Gi")), on(), &engine.Rejection{Reason: ReservedForDevices, Cure: engine.Grow, Subject: "memory", Want: gib(65), Have: gib(64)}},
		"too few cores now":                          {shape(job("j").CPU(16000, "1Gi")), on(job("x").CPU(4000, "1Gi")), &engine.Rejection{Reason: ReservedForDevices, Cure: soon, Subject: "cpu", Want: cores(16), Have: cores(12)}},
		"a permanent shortage is reported first":     {shape(job("j").CPU(16000, "65Gi")), on(job("x").CPU(4000, "1Gi")), &engine.Rejection{Reason: ReservedForDevices, Cure: engine.Grow, Subject: "memory", Want: gib(65), Have: gib(64)}},
		"used devices reserve nothing":               {shape(job("j").CPU(24000, "64Gi")), on(job("x").CPU(8000, "64Gi").Devices(2)), nil},
		"half a device reserves half":                {shape(job("j").CPU(20000, "1Gi")), on(job("x").Share(1, 500)), nil},
		"too little is free without the reservation": {shape(job("j").CPU(16000, "1Gi")), on(job("x").CPU(40000, "1Gi")), nil},
		"more than the capacity":                     {shape(job("j").CPU(49000, "1Gi")), on(), nil},
		"neither cpu nor memory is requested":        {shape(job("j")), on(job("x").CPU(40000, "1Gi")), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, p.admit(tc.shape, tc.node)); diff != "" {
				t.Errorf("admit (-want +got):\n%s", diff)
			}
		})
	}
}

// A reservation rejects tasks without devices and no other tasks. Without a reservation, no node is rejected.
func TestReserveInSession(t *testing.T) {
	decide := func(args engine.Arguments, j *enginetest.JobBuilder) int {
		state := enginetest.State(enginetest.Node("n").CPU(32, "256Gi").GPUs(4, "A100", "80Gi"), j)
		s := enginetest.Engine(built(t, args)).Open(state, engine.Options{})
		defer s.Close()
		out, err := s.Run()
		if err != nil {
			t.Fatal(err)
		}
		return len(out.Decisions)
	}
	on := enginetest.Arguments(`{"reserve": {"perDevice": {"cpu": 8}}}`)
	got := map[string]int{
		"off, no devices": decide(engine.NoArguments{}, enginetest.Job("j").CPU(8000, "1Gi")),
		"on, no devices":  decide(on, enginetest.Job("j").CPU(8000, "1Gi")),
		"on, devices":     decide(on, enginetest.Job("j").CPU(8000, "1Gi").Devices(1)),
	}
	if diff := cmp.Diff(map[string]int{"off, no devices": 1, "on, no devices": 0, "on, devices": 1}, got); diff != "" {
		t.Errorf("decisions (-want +got):\n%s", diff)
	}
}

func TestArguments(t *testing.T) {
	tests := map[string]struct{ args, err string }{
		"nothing scarce":   {`{"resources": []}`, `resources is empty, so nothing is scarce; name a resource, or leave the field out for the default`},
		"no name":          {`{"resources": [""]}`, `resources: a resource has no name; write one such as nvidia.com/gpu`},
		"pods":             {`{"resources": ["pods"]}`, `resources: pods counts tasks and is not a type of resource; remove it`},
		"twice":            {`{"resources": ["a", "a"]}`, `resources: a is listed twice; remove one`},
		"weight 0":         {`{"weights": {"a": 0}}`, `weights: a: weight 0 is not between 1 and 100000; to leave it out of the score, remove it`},
		"not scarce":       {`{"resources": ["nvidia.com/gpu"], "weights": {"nvidia.com/gpus": 2}}`, `weights: nvidia.com/gpus is not among the scarce resources; add it to resources; did you mean "nvidia.com/gpu"?`},
		"empty reserve":    {`{"reserve": {}}`, `reserve: perDevice reserves nothing; give cpu or memory, or leave reserve out`},
		"bad cores":        {`{"reserve": {"perDevice": {"cpu": "8 cores"}}}`, `reserve: perDevice: cpu: "8 cores" is not a number of cores; write one such as 8, 1.5 or 500m`},
		"bad memory":       {`{"reserve": {"perDevice": {"memory": "64GiB"}}}`, `reserve: perDevice: memory: "64GiB" is not an amount of memory; write one such as 64Gi`},
		"no amount at all": {`{"reserve": {"perDevice": {"cpu": [8]}}}`, `[8] is not an amount; write one such as 8 or 64Gi`},
		"unknown field":    {`{"resource": []}`, `json: unknown field "resource"`},
		"unknown reserve":  {`{"reserve": {"perGPU": {}}}`, `json: unknown field "perGPU"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New(enginetest.Arguments(tc.args))
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tc.err, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestQuantity(t *testing.T) {
	type read struct{ Cores, Bytes int64 } // -1: refused
	tests := map[Quantity]read{
		"":                     {0, 0},
		"8":                    {8000, 8},
		"500m":                 {500, -1},
		"1.5":                  {1500, -1},
		"0.125":                {125, -1},
		"1.2345":               {-1, -1},
		"1.":                   {-1, -1},
		".5":                   {-1, -1},
		"-1":                   {-1, -1},
		"+1":                   {-1, -1},
		"1e3":                  {-1, -1},
		"1_000":                {-1, -1},
		" 1":                   {-1, -1},
		"64Gi":                 {-1, 64 << 30},
		"3M":                   {-1, 3e6},
		"1.5Gi":                {-1, -1},
		"Gi":                   {-1, -1},
		"9223372036854775807":  {-1, 9223372036854775807},
		"9223372036854775808":  {-1, -1},
		"9007199254740992Ki":   {-1, -1},
		"9223372036854775.807": {9223372036854775807, -1},
		"9223372036854775.808": {-1, -1},
	}
	for q, want := range tests {
		t.Run(string(q), func(t *testing.T) {
			got := read{-1, -1}
			if v, err := q.cores(); err == nil {
				got.Cores = v
			}
			if v, err := q.bytes(); err == nil {
				got.Bytes = v
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%q (-want +got):\n%s", q, diff)
			}
		})
	}
}

func BenchmarkScarce(b *testing.B) {
	p := built(b, enginetest.Arguments(`{"reserve": {"perDevice": {"cpu": 4, "memory": "32Gi"}}}`))
	n := enginetest.Node("n").CPU(96, "512Gi").Resource("ephemeral-storage", 1<<40).Resource("hugepages-2Mi", 1<<30).GPUs(8, "A100", "80Gi").Build()
	cpu, gpu := shape(enginetest.Job("j").CPU(16000, "32Gi")), shape(enginetest.Job("j").CPU(16000, "32Gi").Devices(2))
	b.Run("score/cpu", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.score(cpu, n)
		}
	})
	b.Run("score/devices", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.score(gpu, n)
		}
	})
	b.Run("admit", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.admit(cpu, n)
		}
	})
}
