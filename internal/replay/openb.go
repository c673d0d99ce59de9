package replay

import (
	"fmt"
	"io"
	"math/rand"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/berth-project/berth/cluster"
)

// The protocol of "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
// Gradient Descent" (USENIX ATC'23) for Alibaba's GPU cluster trace of 2023, which is called openb.
// The tasks of the trace arrive one at a time in random order, and tasks that are drawn from it
// follow until 130 % of the devices of the cluster have arrived. No task ends, and a task that does
// not fit is not tried again.

// openbLoad is how much arrives, in percent of the devices of the cluster.
const openbLoad = 130

// openbEvery is the time between two arrivals. It decides nothing.
const openbEvery = int64(time.Second)

// ReadOpenb reads the list of nodes and the list of tasks of the openb trace.
func ReadOpenb(nodes, tasks io.Reader, nodesFile, tasksFile string) (*Trace, error) {
	t := &Trace{Name: baseName(tasksFile)}
	err := readTable(nodes, nodesFile, []string{"sn", "cpu_milli", "memory_mib", "gpu", "model"}, func(r row) {
		t.Nodes = append(t.Nodes, Node{
			Name: r.text("sn"), CPU: r.number("cpu_milli"), Memory: cluster.Bytes(r.number("memory_mib")) << 20,
			Devices: int(r.number("gpu")), Product: r.text("model"),
		})
	})
	if err != nil {
		return nil, err
	}
	err = readTable(tasks, tasksFile, []string{"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"}, func(r row) {
		j := Job{Name: r.text("name"), Request: Request{
			CPU: r.number("cpu_milli"), Memory: cluster.Bytes(r.number("memory_mib")) << 20,
			Devices: int(r.number("num_gpu")), Products: products(r.text("gpu_spec")),
		}}
		if j.Devices > 0 {
			j.Share = cluster.Milli(r.number("gpu_milli"))
			r.check(j.Share >= 1 && j.Share <= cluster.Whole && (j.Devices == 1 || j.Share == cluster.Whole), "gpu_milli", "want from 1 to 1000, and 1000 if num_gpu is more than 1")
		}
		t.Jobs = append(t.Jobs, j)
	})
	return t, err
}

// Openb returns the trace as the protocol has it for the seed. If shuffleNames is set, the names of
// nodes are exchanged at random, so that a result cannot depend on their order.
func (t *Trace) Openb(seed int64, shuffleNames bool) *Trace {
	out := &Trace{Name: t.Name, Nodes: slices.Clone(t.Nodes)}
	random := rand.New(rand.NewSource(seed))
	random.Int()
	jobs := make([]Job, t.Len())
	for i := range jobs {
		jobs[i] = *t.Job(i)
		jobs[i].Name = t.jobName(i)
	}
	slices.SortStableFunc(jobs, func(a, b Job) int { return strings.Compare(a.Name, b.Name) })
	random.Shuffle(len(jobs), func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })
	limit := t.Milli() * openbLoad / 100
	var sum int64
	for i := range jobs {
		sum += jobs[i].Milli()
	}
	for from := len(jobs); from > 0; {
		next := jobs[random.Intn(from)]
		if sum += next.Milli(); sum > limit {
			break
		}
		jobs = append(jobs, next)
	}
	for i := range jobs {
		jobs[i].Arrival = int64(i) * openbEvery
	}
	out.Jobs = jobs
	if shuffleNames {
		names := rand.New(rand.NewSource(seed))
		names.Shuffle(len(out.Nodes), func(i, j int) {
			out.Nodes[i].Name, out.Nodes[j].Name = out.Nodes[j].Name, out.Nodes[i].Name
		})
	}
	return out
}

// Times returns a trace with this number of copies of the cluster and of the jobs. The jobs of the
// copies alternate.
func (t *Trace) Times(n int) *Trace {
	out := &Trace{Name: fmt.Sprintf("%s × %d", t.Name, n), Nodes: make([]Node, 0, n*len(t.Nodes)), Jobs: t.Jobs, Copies: n * max(1, t.Copies)}
	for c := range n {
		for i := range t.Nodes {
			node := t.Nodes[i]
			node.Name = copyName(node.Name, c)
			out.Nodes = append(out.Nodes, node)
		}
	}
	return out
}

// baseName returns the name of a file without its folder and extension.
func baseName(file string) string {
	return strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
}
