package replay

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/berth-project/berth/cluster"
)

// Synth describes a synthetic trace. Jobs arrive at random (a Poisson process), request what a job of
// a list requests, each with the same probability, and run for a log-normal time.
type Synth struct {
	Nodes []Node
	Jobs  []Job // requests are drawn from these
	// Load is what is offered: the mean of the devices that the jobs would hold if none of them had
	// to wait, divided by the devices of the cluster.
	Load float64
	Mean time.Duration // of run times
	// Sigma is the standard deviation of the logarithm of run times. 0 means that all are equal.
	Sigma  float64
	Length time.Duration // how long jobs arrive
}

// Check returns an error if a value makes no sense.
func (s *Synth) Check() error {
	var devices, milli int64
	for i := range s.Nodes {
		devices += int64(s.Nodes[i].Devices)
	}
	for i := range s.Jobs {
		milli += s.Jobs[i].Milli()
	}
	switch {
	case devices == 0:
		return fmt.Errorf("the cluster has no devices")
	case milli == 0:
		return fmt.Errorf("no job requests a device")
	case !(s.Load > 0 && s.Load <= 10):
		return fmt.Errorf("load: want more than 0 and at most 10, such as 0.95, have %v", s.Load)
	case s.Mean <= 0 || s.Length <= 0:
		return fmt.Errorf("the mean run time and the length must be more than 0")
	case !(s.Sigma >= 0 && s.Sigma <= 5):
		return fmt.Errorf("sigma: want from 0 to 5, such as 1.2, have %v", s.Sigma)
	case s.expected(devices, milli) > maxSynthJobs:
		return fmt.Errorf("about %.0f jobs would arrive, and the limit is %d; choose a smaller load or length, or a longer mean run time", s.expected(devices, milli), maxSynthJobs)
	}
	return nil
}

// maxSynthJobs bounds the memory that a synthetic trace takes.
const maxSynthJobs = 20_000_000

// expected returns how many jobs arrive on average.
func (s *Synth) expected(devices, milli int64) float64 {
	each := float64(milli) / float64(len(s.Jobs)) / float64(cluster.Whole) // mean number of devices of a job
	return s.Load * float64(devices) / each * float64(s.Length) / float64(s.Mean)
}

// Trace draws the trace with the seed.
func (s *Synth) Trace(seed int64) *Trace {
	t := &Trace{Name: "synth", Nodes: slices.Clone(s.Nodes)}
	var milli int64
	for i := range s.Jobs {
		milli += s.Jobs[i].Milli()
	}
	random := rand.New(rand.NewPCG(uint64(seed), 1))
	// Arrivals per nanosecond, so that arrivals × mean devices × mean run time = load × devices.
	rate := s.expected(t.Milli()/int64(cluster.Whole), milli) / float64(s.Length)
	// The mean of a log-normal distribution is e^(mu + sigma²/2).
	mu := math.Log(float64(s.Mean)) - s.Sigma*s.Sigma/2
	for at := 0.0; ; {
		at += random.ExpFloat64() / rate
		if at > float64(s.Length) {
			return t
		}
		j := s.Jobs[random.IntN(len(s.Jobs))]
		j.Name = fmt.Sprintf("%s-%d", j.Name, len(t.Jobs))
		j.Arrival = int64(at)
		j.RunTime = max(1, int64(math.Exp(mu+s.Sigma*random.NormFloat64())))
		t.Jobs = append(t.Jobs, j)
	}
}

// Machines returns n equal nodes.
func Machines(n, devices int, product string, cores, memoryGiB int64) []Node {
	out := make([]Node, n)
	for i := range out {
		out[i] = Node{Name: fmt.Sprintf("node-%06d", i), CPU: cores * 1000, Memory: cluster.Bytes(memoryGiB) << 30, Devices: devices, Product: product}
	}
	return out
}

// DefaultRequests returns requests as they are frequent in public traces: most tasks request one
// device or a part of one, some several devices, and some all devices of a node.
func DefaultRequests(devicesPerNode int) []Job {
	var out []Job
	add := func(count, devices int, share cluster.Milli, cores, memoryGiB int64) {
		if devices > devicesPerNode {
			return
		}
		for range count {
			out = append(out, Job{Name: "job", Request: Request{CPU: cores * 1000, Memory: cluster.Bytes(memoryGiB) << 30, Devices: devices, Share: share}})
		}
	}
	add(10, 0, 0, 4, 16)
	add(15, 1, 250, 2, 8)
	add(15, 1, 500, 4, 16)
	add(40, 1, 0, 8, 32)
	add(8, 2, 0, 16, 64)
	add(6, 4, 0, 32, 128)
	add(6, 8, 0, 64, 256)
	return out
}
