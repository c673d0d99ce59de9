package replay

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/berth-project/berth/cluster"
)

// Result is what was measured with one policy, over all seeds. Its JSON format is API.
type Result struct {
	Trace      string     `json:"trace"`
	Policy     string     `json:"policy"`
	Nodes      int        `json:"nodes"`
	Devices    int        `json:"devices"`
	Seeds      []int64    `json:"seeds"`
	Arrivals   []int      `json:"arrivals"` // how many jobs arrived, for each seed
	Allocation Allocation `json:"allocation"`
	Failed     Failed     `json:"failed"`
	Decisions  Times      `json:"decisions"`
	Waiting    *Waiting   `json:"waiting,omitempty"` // if jobs wait
	Checked    int        `json:"checked,omitempty"` // how many decisions were compared with a scan of all nodes
	Evicted    int        `json:"evicted,omitempty"` // how many tasks were evicted in the replay of a log
	Course     [][]Point  `json:"-"`                 // for each seed
	Durations  []int64    `json:"-"`                 // how long each decision took, sorted, in nanoseconds
	PeakMemory int64      `json:"peakMemoryBytes,omitempty"`
}

// Allocation is how much of the devices was allocated, in percent: at the end if jobs do not end,
// and otherwise the mean over the measured time.
type Allocation struct {
	Mean    float64   `json:"mean"`
	PerSeed []float64 `json:"perSeed"`
}

// Failed is how many jobs could not be placed, or still waited at the end.
type Failed struct {
	Mean    float64 `json:"mean"`
	PerSeed []int   `json:"perSeed"`
	// ByDevices is the mean by the number of devices of a task.
	ByDevices map[string]float64 `json:"byDevices,omitempty"`
}

// Times is how long decisions took: from the arrival of a job until it was placed or refused. The
// percentiles are in microseconds.
type Times struct {
	PerSecond float64 `json:"perSecond"`
	P50       float64 `json:"p50"`
	P99       float64 `json:"p99"`
	P999      float64 `json:"p999"`
	Max       float64 `json:"max"`
}

// Waiting is how long jobs waited, in seconds. A job that still waits at the end counts as long as
// it has waited.
type Waiting struct {
	All       Waits `json:"all"`
	WholeNode Waits `json:"wholeNode"` // of tasks that request as many devices as the largest node has
}

// Waits is how long some jobs waited, in seconds.
type Waits struct {
	Jobs int     `json:"jobs"`
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// Summarize returns the result of runs of the same policy. steady is set if jobs end.
func Summarize(t *Trace, policy string, seeds []int64, runs []*Run, traces []*Trace, steady bool) *Result {
	out := &Result{Trace: t.Name, Policy: policy, Nodes: len(t.Nodes), Devices: int(t.Milli() / int64(cluster.Whole)), Seeds: seeds}
	by := map[int]float64{}
	var spent float64
	var all, large []float64
	most := largest(t.Nodes)
	for i, r := range runs {
		share := float64(r.Milli) / float64(max(1, t.Milli()))
		if steady {
			share = r.Mean
		}
		out.Arrivals = append(out.Arrivals, r.Arrived)
		out.Allocation.PerSeed = append(out.Allocation.PerSeed, percent(share))
		out.Allocation.Mean += share / float64(len(runs))
		out.Failed.PerSeed = append(out.Failed.PerSeed, r.Failed)
		out.Failed.Mean += float64(r.Failed) / float64(len(runs))
		for devices, n := range r.FailedBy {
			by[devices] += float64(n) / float64(len(runs))
		}
		out.Durations = append(out.Durations, r.Took...)
		spent += r.Spent.Seconds()
		out.Checked += r.Checked
		out.Course = append(out.Course, r.Points)
		for _, w := range r.Waits {
			seconds := float64(w.Time) / 1e9
			all = append(all, seconds)
			if traces[i].Job(w.Job).Devices == most {
				large = append(large, seconds)
			}
		}
	}
	out.Allocation.Mean = percent(out.Allocation.Mean)
	if len(by) > 0 {
		out.Failed.ByDevices = map[string]float64{}
		for devices, n := range by {
			out.Failed.ByDevices[strconv.Itoa(devices)] = math.Round(n*10) / 10
		}
	}
	slices.Sort(out.Durations)
	out.Decisions = times(out.Durations, spent)
	if steady {
		out.Waiting = &Waiting{waits(all), waits(large)}
	}
	return out
}

// SummarizeLog returns the result of a recorded log, or of a replay of it with a policy.
func SummarizeLog(name, policy string, r *LogRun) *Result {
	share := percent(r.Mean)
	out := &Result{
		Trace: name, Policy: policy, Nodes: r.Nodes, Devices: r.Devices, Seeds: []int64{0}, Arrivals: []int{r.Arrived}, Evicted: r.Evicted, Checked: r.Checked,
		Allocation: Allocation{share, []float64{share}}, Failed: Failed{Mean: float64(r.Failed), PerSeed: []int{r.Failed}},
		Course: [][]Point{r.Points}, Durations: r.Took,
	}
	if len(r.FailedBy) > 0 {
		out.Failed.ByDevices = map[string]float64{}
		for devices, n := range r.FailedBy {
			out.Failed.ByDevices[strconv.Itoa(devices)] = float64(n)
		}
	}
	var all, large []float64
	for _, w := range r.Waits {
		all = append(all, float64(w.Time)/1e9)
		if w.Devices == r.Largest {
			large = append(large, float64(w.Time)/1e9)
		}
	}
	slices.Sort(out.Durations)
	out.Decisions = times(out.Durations, r.Spent.Seconds())
	out.Waiting = &Waiting{waits(all), waits(large)}
	return out
}

// percent returns the share in percent, rounded to thousandths of a percent.
func percent(share float64) float64 { return math.Round(share*100_000) / 1000 }

// largest returns how many devices the largest node has.
func largest(nodes []Node) int {
	most := 0
	for i := range nodes {
		most = max(most, nodes[i].Devices)
	}
	return most
}

func times(sorted []int64, spent float64) Times {
	if len(sorted) == 0 {
		return Times{}
	}
	at := func(q float64) float64 { return float64(quantile(sorted, q)) / 1000 }
	return Times{PerSecond: math.Round(float64(len(sorted)) / max(spent, 1e-9)), P50: at(0.5), P99: at(0.99), P999: at(0.999), Max: at(1)}
}

func waits(seconds []float64) Waits {
	if len(seconds) == 0 {
		return Waits{}
	}
	slices.Sort(seconds)
	sum := 0.0
	for _, s := range seconds {
		sum += s
	}
	return Waits{Jobs: len(seconds), Mean: sum / float64(len(seconds)), P50: quantile(seconds, 0.5), P99: quantile(seconds, 0.99), Max: quantile(seconds, 1)}
}

// quantile returns the q-quantile of a sorted list that is not empty.
func quantile[T cmp.Ordered](sorted []T, q float64) T {
	return sorted[int(math.Ceil(q*float64(len(sorted)-1)))]
}
