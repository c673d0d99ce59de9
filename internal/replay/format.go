package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/berth-project/berth/cluster"
)

// Layout is how the files of a trace are written.
type Layout string

// The layouts. docs/replay.md describes them.
const (
	LayoutBerth   Layout = "berth"   // the format of Berth: CSV with a header
	LayoutOpenb   Layout = "openb"   // Alibaba 2023, cluster-trace-gpu-v2023
	LayoutAlibaba Layout = "alibaba" // Alibaba 2020, cluster-trace-gpu-v2020: pai_machine_spec and pai_task_table
	LayoutHelios  Layout = "helios"  // Helios 2020: cluster_log.csv; nodes are in the format of Berth
	LayoutPhilly  Layout = "philly"  // Philly 2017: cluster_machine_list and cluster_job_log
)

// Layouts returns all layouts.
func Layouts() []string {
	return []string{string(LayoutBerth), string(LayoutOpenb), string(LayoutAlibaba), string(LayoutHelios), string(LayoutPhilly)}
}

// File is a file that is read.
type File struct {
	Name string
	io.Reader
}

// Read reads a trace. Jobs are sorted by their arrival. It returns how many jobs of the file were
// left out because they have no run time or request nothing.
func Read(layout Layout, nodes, jobs File) (t *Trace, leftOut int, err error) {
	t = &Trace{Name: baseName(jobs.Name)}
	switch layout {
	case LayoutOpenb:
		t, err = ReadOpenb(nodes, jobs, nodes.Name, jobs.Name)
		return t, 0, err
	case LayoutAlibaba:
		if t.Nodes, err = alibabaNodes(nodes); err == nil {
			t.Jobs, leftOut, err = alibabaJobs(jobs)
		}
	case LayoutPhilly:
		if t.Nodes, err = phillyNodes(nodes); err == nil {
			t.Jobs, leftOut, err = phillyJobs(jobs)
		}
	case LayoutHelios:
		if t.Nodes, err = readNodes(nodes); err == nil {
			t.Jobs, leftOut, err = heliosJobs(jobs)
		}
	default:
		if t.Nodes, err = readNodes(nodes); err == nil {
			t.Jobs, err = readJobs(jobs)
		}
	}
	if err != nil {
		return nil, 0, err
	}
	slices.SortStableFunc(t.Jobs, func(a, b Job) int { return int(max(-1, min(1, a.Arrival-b.Arrival))) })
	if len(t.Jobs) > 0 {
		first := t.Jobs[0].Arrival
		for i := range t.Jobs {
			t.Jobs[i].Arrival -= first
		}
	}
	return t, leftOut, nil
}

// readNodes reads nodes in the format of Berth.
func readNodes(f File) (out []Node, err error) {
	err = readTable(f, f.Name, []string{"name", "cpu", "devices"}, func(r row) {
		out = append(out, Node{
			Name: r.text("name"), Labels: labels(r), CPU: r.scaled("cpu", 1000), Memory: cluster.Bytes(r.scaled("memory_gib", 1<<30)),
			Devices: int(r.number("devices")), Product: r.text("product"), DeviceMemory: cluster.Bytes(r.scaled("device_memory_gib", 1<<30)),
		})
	})
	return out, err
}

// labels reads labels such as "rack=r1;zone=a".
func labels(r row) map[string]string {
	text := r.text("labels")
	if text == "" {
		return nil
	}
	out := map[string]string{}
	for _, pair := range strings.Split(text, ";") {
		key, value, found := strings.Cut(pair, "=")
		r.check(found && key != "", "labels", "want labels such as rack=r1;zone=a")
		out[key] = value
	}
	return out
}

// readJobs reads jobs in the format of Berth.
func readJobs(f File) (out []Job, err error) {
	err = readTable(f, f.Name, []string{"name", "arrival_s", "cpu", "devices"}, func(r row) {
		j := Job{
			Name: r.text("name"), Queue: r.text("queue"), Arrival: r.scaled("arrival_s", 1e9), RunTime: r.scaled("duration_s", 1e9),
			Tasks: int(r.number("tasks")), Priority: int32(r.number("priority")),
			Request: Request{CPU: r.scaled("cpu", 1000), Memory: cluster.Bytes(r.scaled("memory_gib", 1<<30)), Devices: int(r.number("devices")), Products: products(r.text("products"))},
		}
		r.setShare(&j, r.scaled("share", 1000), "share")
		out = append(out, j)
	})
	return out, err
}

// setShare sets the share of a device. A share is only of one device.
func (r row) setShare(j *Job, milli int64, column string) {
	r.check(milli >= 0 && milli <= int64(cluster.Whole), column, "want a share of a device from 0 to 1")
	if milli == 0 || milli == int64(cluster.Whole) {
		return
	}
	r.check(j.Devices == 1, column, "a task with a share has one device")
	j.Share = cluster.Milli(milli)
}

// scaled returns the field as a number that is multiplied by unit and rounded.
func (r row) scaled(column string, unit float64) int64 {
	text := r.text(column)
	if text == "" {
		return 0
	}
	var v float64
	if _, err := fmt.Sscan(text, &v); err != nil || !(v >= 0 && v*unit < 1<<53) {
		r.fail(column, "%q is not a number from 0 to %.0f", text, float64(1<<53)/unit)
		return 0
	}
	return int64(math.Round(v * unit))
}

// The headers of the tables of Alibaba 2020, whose files have none.
var (
	alibabaMachineColumns = []string{"machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu"}
	alibabaTaskColumns    = []string{"job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu", "gpu_type"}
)

func alibabaNodes(f File) (out []Node, err error) {
	err = readPlainTable(f, f.Name, alibabaMachineColumns, func(r row) {
		out = append(out, Node{
			Name: r.text("machine"), CPU: r.scaled("cap_cpu", 1000), Memory: cluster.Bytes(r.scaled("cap_mem", 1<<30)),
			Devices: int(r.number("cap_gpu")), Product: r.text("gpu_type"),
		})
	})
	return out, err
}

// alibabaJobs reads tasks. Each has a number of instances, which start together. CPUs and devices are
// in percent.
func alibabaJobs(f File) (out []Job, leftOut int, err error) {
	err = readPlainTable(f, f.Name, alibabaTaskColumns, func(r row) {
		j := Job{
			Name: r.text("job_name") + "/" + r.text("task_name"), Arrival: r.scaled("start_time", 1e9), Tasks: int(r.number("inst_num")),
			Request: Request{CPU: r.scaled("plan_cpu", 10), Memory: cluster.Bytes(r.scaled("plan_mem", 1<<30))},
		}
		j.RunTime = r.scaled("end_time", 1e9) - j.Arrival
		if j.Arrival == 0 || j.RunTime <= 0 {
			leftOut++
			return
		}
		milli := r.scaled("plan_gpu", 10)
		if milli > 0 {
			j.Devices = 1
			if product := r.text("gpu_type"); product != "" && product != "MISC" {
				j.Products = []string{product}
			}
		}
		if milli > int64(cluster.Whole) {
			j.Devices = int((milli + int64(cluster.Whole) - 1) / int64(cluster.Whole))
			milli = 0
		}
		r.setShare(&j, milli, "plan_gpu")
		out = append(out, j)
	})
	return out, leftOut, err
}

// heliosJobs reads jobs whose devices and CPUs are counted over all their nodes.
func heliosJobs(f File) (out []Job, leftOut int, err error) {
	err = readTable(f, f.Name, []string{"job_id", "gpu_num", "cpu_num", "node_num", "submit_time", "duration"}, func(r row) {
		at, timeErr := time.Parse(time.DateTime, r.text("submit_time"))
		r.check(timeErr == nil, "submit_time", "want a time such as 2020-04-01 00:00:09")
		tasks := max(1, r.number("node_num"))
		j := Job{
			Name: r.text("job_id"), Queue: r.text("vc"), Arrival: at.UnixNano(), RunTime: r.scaled("duration", 1e9), Tasks: int(tasks),
			Request: Request{CPU: r.scaled("cpu_num", 1000) / tasks, Devices: int((r.number("gpu_num") + tasks - 1) / tasks)},
		}
		if j.RunTime <= 0 {
			leftOut++
			return
		}
		out = append(out, j)
	})
	return out, leftOut, err
}

func phillyNodes(f File) (out []Node, err error) {
	err = readTable(f, f.Name, []string{"machineid", "number of gpus"}, func(r row) {
		size := strings.TrimSuffix(strings.TrimSpace(r.text("single gpu mem")), "GB")
		out = append(out, Node{Name: r.text("machineid"), CPU: unlimited / 1000, Devices: int(r.number("number of gpus")), Product: strings.TrimSpace("GPU-" + size)})
	})
	return out, err
}

// phillyJobs reads jobs. What a job requested is what its first attempt held.
func phillyJobs(f File) (out []Job, leftOut int, err error) {
	var list []struct {
		VC        string `json:"vc"`
		ID        string `json:"jobid"`
		Submitted string `json:"submitted_time"`
		Attempts  []struct {
			Start  string `json:"start_time"`
			End    string `json:"end_time"`
			Detail []struct {
				IP   string   `json:"ip"`
				GPUs []string `json:"gpus"`
			} `json:"detail"`
		} `json:"attempts"`
	}
	if err := json.NewDecoder(f).Decode(&list); err != nil {
		return nil, 0, fmt.Errorf("%s: %w", f.Name, err)
	}
	for i, x := range list {
		at, err := time.Parse(time.DateTime, x.Submitted)
		if err != nil {
			return nil, 0, fmt.Errorf("%s: job %d: submitted_time: want a time such as 2017-10-04 21:34:04, have %q", f.Name, i, x.Submitted)
		}
		j := Job{Name: x.ID, Queue: x.VC, Arrival: at.UnixNano()}
		for k, a := range x.Attempts {
			from, err1 := time.Parse(time.DateTime, a.Start)
			to, err2 := time.Parse(time.DateTime, a.End)
			if errors.Join(err1, err2) == nil {
				j.RunTime += int64(to.Sub(from))
			}
			if k == 0 {
				j.Tasks = len(a.Detail)
				for _, d := range a.Detail {
					j.Devices = max(j.Devices, len(d.GPUs))
				}
			}
		}
		if j.RunTime <= 0 || j.Tasks == 0 {
			leftOut++
			continue
		}
		out = append(out, j)
	}
	return out, leftOut, nil
}
