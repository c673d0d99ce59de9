package timeline

import (
	"math"
	"time"

	"github.com/berth-project/berth/cluster"
)

// Workload is the history of one workload.
type Workload struct {
	Workload string `json:"workload"`
	Queue    string `json:"queue"`
	Arrived  string `json:"arrived,omitempty"` // absent if it has not arrived
	Ended    string `json:"ended,omitempty"`
	// State is the status after the last cycle: Coming (it has not arrived), Waiting,
	// Promised (nodes are reserved for tasks of it, and none runs), Part (some of its
	// tasks run), Running, Evicted or Ended.
	State     string `json:"state"`
	Waited    string `json:"waited"`              // time in which its minimum did not run, including the time after evictions
	Evictions int    `json:"evictions,omitempty"` // number of its tasks that were evicted
}

// Summary has the totals from the first cycle to the last.
type Summary struct {
	Arrived int `json:"arrived"` // number of workloads that have arrived
	Ended   int `json:"ended"`
	Running int `json:"running"` // after the last cycle, with at least their minimum
	Waiting int `json:"waiting"` // after the last cycle
	Coming  int `json:"coming"`  // created after the last cycle
	// Makespan is the time from the start until the last workload with a run time ends.
	// It is absent if one of these workloads has not ended, or if there is none.
	Makespan string `json:"makespan,omitempty"`
	// MeanWait and MaxWait do not count workloads that ran at the start and never waited.
	MeanWait string `json:"meanWait"`
	MaxWait  string `json:"maxWait"`
	Longest  string `json:"longest,omitempty"` // the workload that waited longest
	// DeviceHours is the device time that tasks have used, and Offered that of all
	// devices that are not lost. A task that holds a third of a device uses a third of its
	// time.
	DeviceHours float64 `json:"deviceHours"`
	Offered     float64 `json:"offered"`
	Utilization float64 `json:"utilization"` // DeviceHours divided by Offered
	Evictions   int     `json:"evictions"`   // number of evicted tasks
	// Lost is the device time that was used by tasks that were evicted, and by the
	// remaining tasks of gangs that lost their minimum.
	Lost float64 `json:"lost"`
}

// Result returns the timeline in the form that is printed as JSON.
func (c *Timeline) Result() *Result {
	out := &Result{Start: Stamp(c.Start), Every: Span(c.Every), Cycles: c.Cycle, Frames: c.Frames, Workloads: []Workload{}, Summary: c.Summary()}
	if c.Settled {
		out.Settled = c.LastActiveCycle()
	} else if c.NextWake > 0 {
		out.Quiet = c.LastActiveCycle()
	}
	if out.Frames == nil {
		out.Frames = []*Frame{}
	}
	for _, h := range c.Histories {
		w := Workload{Workload: h.Job.ID, Queue: h.Job.Queue, State: stateNames[h.Mark(c.Cycle)], Waited: Span(int64(h.Waited) * c.Every), Evictions: h.Evictions}
		if h.Arrived > 0 {
			w.Arrived = Stamp(c.at(h.Arrived))
		}
		if h.Ended > 0 {
			w.Ended = Stamp(c.at(h.Ended))
		}
		out.Workloads = append(out.Workloads, w)
	}
	return out
}

var stateNames = map[Mark]string{
	Absent: "Coming", Waiting: "Waiting", Nominated: "Promised", PartlyRunning: "Part",
	Running: "Running", Evicted: "Evicted", Done: "Ended",
}

// Summary returns the totals of the simulation.
func (c *Timeline) Summary() Summary {
	s := Summary{Evictions: c.evictions, Lost: c.hours(c.lost), DeviceHours: c.hours(c.used)}
	last, timed, ended := 0, 0, 0
	waits, total, longest := int64(0), int64(0), 0
	for _, h := range c.Histories {
		if h.Job.RunFor > 0 {
			timed++
		}
		switch {
		case h.Arrived == 0:
			s.Coming++
			continue
		case h.Ended > 0:
			s.Ended++
			if h.Job.RunFor > 0 {
				ended++
				last = max(last, h.Ended)
			}
		case h.Began >= 0:
			s.Running++
		default:
			s.Waiting++
		}
		s.Arrived++
		if h.notRunningAtStart || h.Waited > 0 {
			waits++
			total += int64(h.Waited)
			if h.Waited > longest {
				longest, s.Longest = h.Waited, h.Job.ID
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

// hours converts thousandths of a device, multiplied by cycles, to device-hours.
func (c *Timeline) hours(milliCycles int64) float64 {
	h := float64(milliCycles) * time.Duration(c.Every).Hours() / 1000
	return math.Round(h*1000) / 1000
}
