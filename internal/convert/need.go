package convert

import (
	"slices"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"k8s.io/apimachinery/pkg/api/resource"
)

// checkMemory converts the memory of one device. It returns 0 if the amount is not
// valid.
func checkMemory(q resource.Quantity, at path, r reporter) cluster.Bytes {
	switch {
	case q.Sign() <= 0:
		r.errorf(at, "say the memory of each device, such as 80Gi")
	case q.CmpInt64(int64(maxDeviceMemory)) > 0:
		r.errorf(at, "%s is too large: no device has more than 16Ti", q.String())
	default:
		return cluster.Bytes(q.Value())
	}
	return 0
}

// makeNeed converts the devices that a task requests.
func makeNeed(d *v1alpha1.DeviceNeed, at path, r reporter) cluster.Need {
	if d == nil {
		return cluster.Need{}
	}
	n := cluster.Need{Devices: 1, SameProduct: d.SameProduct, SameLink: d.SameLink, Partition: d.Partition}
	if d.Count != nil {
		if n.Devices = *d.Count; n.Devices < 1 || n.Devices > maxDevices {
			r.errorf(at.Add("count"), "want from 1 to %d devices, have %d; a task that needs none has no devices field", maxDevices, n.Devices)
			n.Devices = 1
		}
	}
	n.Products = slices.Clone(d.Products)
	checkDistinct(d.Products, "product", at.Add("products"), r)
	slices.Sort(n.Products)
	if d.Partition != "" {
		checkProfile(d.Partition, at.Add("partition"), r)
	}
	if d.Memory != nil {
		n.Memory = checkMemory(*d.Memory, at.Add("memory"), r)
	}
	if d.Share != nil {
		n.Share = makeShare(*d.Share, at.Add("share"), r)
	}
	if d.TotalMemory != nil {
		n.SumAtLeast = totalMemory(*d.TotalMemory, at.Add("totalMemory"), r)
	}
	if d.SameLink && d.Partition != "" {
		r.errorf(at.Add("sameLink"), "MIG slices are not connected with each other: request whole devices, or leave sameLink out")
	}
	switch {
	case d.Memory != nil && d.Share != nil:
		r.errorf(at.Add("share"), "memory and share both say how much of each device; keep one")
	case d.Memory != nil && d.TotalMemory != nil:
		r.errorf(at.Add("totalMemory"), "memory is of each device, totalMemory of all together; keep one")
	}
	return n
}

func makeShare(q resource.Quantity, at path, r reporter) cluster.Milli {
	if q.Sign() <= 0 || q.CmpInt64(1) > 0 {
		r.errorf(at, "want a share above 0 and at most 1, such as 0.5, have %s", q.String())
		return 0
	}
	return cluster.Milli(q.MilliValue())
}

func totalMemory(q resource.Quantity, at path, r reporter) cluster.Bytes {
	if q.Sign() <= 0 {
		r.errorf(at, "say how much device memory is needed, such as 320Gi")
		return 0
	}
	return cluster.Bytes(bytesOf(q, at, r))
}

// makeNodeNeed converts the device request of a task that takes whole nodes. It returns what
// the task needs of each node, and the device memory that one replica needs on all of its
// nodes together.
func makeNodeNeed(d *v1alpha1.DeviceNeed, at path, r reporter) (cluster.Need, cluster.Bytes) {
	n := cluster.Need{WholeNode: true}
	if d == nil {
		return n, 0
	}
	for _, x := range []struct {
		field string
		given bool
	}{{"memory", d.Memory != nil}, {"share", d.Share != nil}, {"partition", d.Partition != ""}} {
		if x.given {
			r.errorf(at.Add(x.field), "unit Node takes whole nodes: say totalMemory, of all devices of a replica, or count, of each node")
		}
	}
	if d.SameLink {
		r.errorf(at.Add("sameLink"), "unit Node takes all devices of a node, however they are connected: leave sameLink out, or select nodes by a label")
	}
	whole := makeNeed(&v1alpha1.DeviceNeed{Count: d.Count, TotalMemory: d.TotalMemory, SameProduct: d.SameProduct, Products: d.Products}, at, r)
	n.SameProduct, n.Products = whole.SameProduct, whole.Products
	if d.Count != nil {
		n.Devices = whole.Devices
	}
	// The plugin CapacityFilter compares the memory with each group of nodes.
	return n, whole.SumAtLeast
}

// makeIsolation combines the isolation of a job and of one of its tasks. Each class, and the
// session, is that of the task or, if the task has none, that of the job. A session applies only
// to the class SessionExclusive. If the combined class is another one, a session of the job is
// ignored, and a session of the task is an error.
func makeIsolation(job, task *v1alpha1.Isolation, at path, r reporter) cluster.Isolation {
	var out cluster.Isolation
	if job != nil {
		out = cluster.Isolation{CPU: cluster.CPUClass(job.CPU), GPU: cluster.GPUClass(job.GPU), Session: job.Session}
	}
	if task != nil {
		checkIsolation(task, at, r)
		if task.CPU != "" {
			out.CPU = cluster.CPUClass(task.CPU)
		}
		if task.GPU != "" {
			out.GPU = cluster.GPUClass(task.GPU)
		}
		if task.Session != "" {
			out.Session = task.Session
			if out.GPU != cluster.GPUSessionExclusive {
				r.errorf(at.Add("session"), "a session needs gpu: %s beside it", cluster.GPUSessionExclusive)
			}
		}
	}
	if out.GPU != cluster.GPUSessionExclusive {
		out.Session = ""
	}
	return out
}

func checkIsolation(i *v1alpha1.Isolation, at path, r reporter) {
	checkEnum(i.CPU, cluster.CPUClasses, at.Add("cpu"), r)
	checkEnum(i.GPU, cluster.GPUClasses, at.Add("gpu"), r)
}

// roundUpCores rounds the cpu of a task up to whole cores, and to at least one, if its
// isolation class takes whole cores only.
func roundUpCores(s *cluster.Shape) {
	if c := s.Isolation.CPU; c == cluster.CPUWholeCore || c == cluster.CPUStrictIsolated {
		s.Resources = s.Resources.With(cluster.CPU, s.Cores()*int64(cluster.Whole))
	}
}
