package timeline

import (
	"math"
	"time"

	"github.com/berth-project/berth/cluster"
)

// Workload is how one workload fared.
type Workload struct {
	Workload string `json:"workload"`
	Queue    string `json:"queue"`
	Arrived  string `json:"arrived,omitempty"` // absent: it is still to come
	Ended    string `json:"ended,omitempty"`
	// State after the last cycle: Coming, Waiting, Promised, Part, Running, Evicted or Ended.
	State     string `json:"state"`
	Waited    string `json:"waited"`              // while its minimum did not run, after evictions too
	Evictions int    `json:"evictions,omitempty"` // of its tasks
}

// Summary is how it went, from the first cycle to the last.
type Summary struct {
	Arrived int `json:"arrived"` // workloads
	Ended   int `json:"ended"`
	Running int `json:"running"` // at the end, with at least their minimum
	Waiting int `json:"waiting"` // at the end
	Coming  int `json:"coming"`  // created after the last cycle
	// Makespan is the time to the last end; absent while a workload with a run time has not ended.
	Makespan string `json:"makespan,omitempty"`
	// MeanWait and MaxWait are over all workloads that did not run from the start or had to wait later.
	MeanWait string `json:"meanWait"`
	MaxWait  string `json:"maxWait"`
	Longest  string `json:"longest,omitempty"` // the workload that waited longest
	// DeviceHours that tasks have run on, of those that were Offered; a third of a
	// device counts as a third.
	DeviceHours float64 `json:"deviceHours"`
	Offered     float64 `json:"offered"`
	Utilization float64 `json:"utilization"` // of the devices, 0 to 1
	Evictions   int     `json:"evictions"`   // of tasks
	// Lost are device-hours of work that evicted tasks and torn gangs had done.
	Lost float64 `json:"lost"`
}

// Result sums the course up.
func (c *Course) Result() *Result {
	out := &Result{Start: Stamp(c.Start), Every: Span(c.Every), Cycles: c.Cycle, Frames: c.Frames, Workloads: []Workload{}, Summary: c.Summary()}
	if c.Settled {
		out.Settled = c.Rest()
	} else if c.Wake > 0 {
		out.Quiet = c.Rest()
	}
	if out.Frames == nil {
		out.Frames = []*Frame{}
	}
	for _, l := range c.Lives {
		w := Workload{Workload: l.Job.ID, Queue: l.Job.Queue, State: names[l.Mark(c.Cycle)], Waited: Span(int64(l.Waited) * c.Every), Evictions: l.Evictions}
		if l.Arrived > 0 {
			w.Arrived = Stamp(c.at(l.Arrived))
		}
		if l.Ended > 0 {
			w.Ended = Stamp(c.at(l.Ended))
		}
		out.Workloads = append(out.Workloads, w)
	}
	return out
}

var names = map[Mark]string{
	Absent: "Coming", Waiting: "Waiting", Promised: "Promised", Part: "Part",
	Running: "Running", Evicted: "Evicted", Done: "Ended",
}

// Summary counts.
func (c *Course) Summary() Summary {
	s := Summary{Evictions: c.evictions, Lost: c.hours(c.lost), DeviceHours: c.hours(c.used)}
	last, timed, ended := 0, 0, 0
	waits, total, longest := int64(0), int64(0), 0
	for _, l := range c.Lives {
		if l.Job.RunFor > 0 {
			timed++
		}
		switch {
		case l.Arrived == 0:
			s.Coming++
			continue
		case l.Ended > 0:
			s.Ended++
			if l.Job.RunFor > 0 {
				ended++
				last = max(last, l.Ended)
			}
		case l.Began >= 0:
			s.Running++
		default:
			s.Waiting++
		}
		s.Arrived++
		if l.fresh || l.Waited > 0 {
			waits++
			total += int64(l.Waited)
			if l.Waited > longest {
				longest, s.Longest = l.Waited, l.Job.ID
			}
		}
	}
	if timed > 0 && timed == ended {
		s.Makespan = Span(c.at(last) - c.Start)
	}
	s.MeanWait, s.MaxWait = "0s", Span(int64(longest)*c.Every)
	if waits > 0 {
		mean := time.Duration(cluster.MulDiv(total, c.Every, waits))
		if mean > time.Second {
			mean = mean.Round(time.Second)
		}
		s.MeanWait = Span(int64(mean))
	}
	if all := c.devices * int64(c.Cycle-1); all > 0 {
		s.Offered = c.hours(all)
		s.Utilization = float64(cluster.MulDiv(c.used, 1000, all)) / 1000
	}
	return s
}

// hours turns thousandths of a device, times cycles, into device-hours.
func (c *Course) hours(milliCycles int64) float64 {
	h := float64(milliCycles) * time.Duration(c.Every).Hours() / 1000
	return math.Round(h*1000) / 1000
}
