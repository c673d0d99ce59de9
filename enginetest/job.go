package enginetest

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// JobBuilder builds a job of equal tasks, which are called worker-0, worker-1, … Each
// method changes the builder and returns it.
type JobBuilder struct {
	j       cluster.Job
	details cluster.JobDetails
	shape   cluster.Shape
	count   int
	min     int
	whole   *cluster.WholeNodes
	nodes   []string

	started   []int64
	subgroups []cluster.Subgroup
	members   []int // number of tasks of each subgroup
	topology  cluster.Topology
}

// Job starts a job of one task, in the default queue, which requests no resources and no
// devices. Its ID is "job/" and the name.
func Job(name string) *JobBuilder {
	b := &JobBuilder{count: 1}
	b.j.ID = "job/" + name
	b.shape.Resources = cluster.Resources{{Name: cluster.CPU}, {Name: cluster.Memory}}
	return b
}

// Queue puts the job into a queue.
func (b *JobBuilder) Queue(name string) *JobBuilder { b.j.Queue = name; return b }

// Profile names the profile that decides about the job.
func (b *JobBuilder) Profile(name string) *JobBuilder { b.shape.Profile = name; return b }

// Namespace puts the job into a namespace. Its ID does not change.
func (b *JobBuilder) Namespace(name string) *JobBuilder { b.j.Namespace = name; return b }

// Priority sets the priority.
func (b *JobBuilder) Priority(p int32) *JobBuilder { b.j.Priority = p; return b }

// Created sets when the job was created, in nanoseconds since 1970.
func (b *JobBuilder) Created(at int64) *JobBuilder { b.j.Created = at; return b }

// RunFor sets how many nanoseconds the job runs after its minimum has started. Only
// simulations over time use it.
func (b *JobBuilder) RunFor(d int64) *JobBuilder { b.j.RunFor = d; return b }

// PreemptionDelay sets for how many nanoseconds after its creation, or after its last
// eviction, no task is evicted or moved for the job.
func (b *JobBuilder) PreemptionDelay(d int64) *JobBuilder { b.details.PreemptionDelay = d; return b }

// StaleGrace sets how many nanoseconds the job may run below its minimum.
func (b *JobBuilder) StaleGrace(d int64) *JobBuilder { b.details.StaleGrace = &d; return b }

// Preemptible makes the job preemptible: it may be evicted for other jobs.
func (b *JobBuilder) Preemptible() *JobBuilder {
	b.j.Preemptible, b.shape.Preemptible = true, true
	return b
}

// Gang gives the job n tasks. Its minimum is all of them unless Min sets another one.
func (b *JobBuilder) Gang(n int) *JobBuilder { b.count = n; return b }

// Min sets the minimum of the job.
func (b *JobBuilder) Min(n int) *JobBuilder { b.min = n; return b }

// Subgroup adds a subgroup with a minimum, for the next tasks that are in no subgroup yet:
// the first call takes the first tasks of the job.
func (b *JobBuilder) Subgroup(name string, tasks, min int, t cluster.Topology) *JobBuilder {
	b.subgroups = append(b.subgroups, cluster.Subgroup{Name: name, Min: min, Topology: t})
	b.members = append(b.members, tasks)
	return b
}

// Topology sets the topology of the job, which keeps all tasks near each other.
func (b *JobBuilder) Topology(t cluster.Topology) *JobBuilder { b.topology = t; return b }

// CPU sets how many thousandths of a core and how much memory each task requests.
func (b *JobBuilder) CPU(milli int64, memory string) *JobBuilder {
	return b.Resource(cluster.CPU, milli).Resource(cluster.Memory, int64(Size(memory)))
}

// Resource sets how much of a resource each task requests: cores in thousandths, memory in
// bytes, and any other resource as a count. Devices are requested with Devices,
// DeviceMemory, Share or WholeNodes.
func (b *JobBuilder) Resource(name string, amount int64) *JobBuilder {
	b.shape.Resources = b.shape.Resources.With(name, amount)
	return b
}

// Devices requests n whole devices for each task.
func (b *JobBuilder) Devices(n int) *JobBuilder { b.shape.Need.Devices = n; return b }

// DeviceMemory requests an amount of memory of each of n devices for each task.
func (b *JobBuilder) DeviceMemory(n int, memory string) *JobBuilder {
	b.shape.Need.Devices, b.shape.Need.Memory = n, Size(memory)
	return b
}

// Share requests a fraction of each of n devices for each task, in thousandths.
func (b *JobBuilder) Share(n int, share cluster.Milli) *JobBuilder {
	b.shape.Need.Devices, b.shape.Need.Share = n, share
	return b
}

// Isolate sets the isolation that each task requests.
func (b *JobBuilder) Isolate(i cluster.Isolation) *JobBuilder { b.shape.Isolation = i; return b }

// Selector adds a label that nodes must have.
func (b *JobBuilder) Selector(key, value string) *JobBuilder {
	b.shape.Selector = append(b.shape.Selector, cluster.Label{Key: key, Value: value})
	return b
}

// Label sets a label of the job itself.
func (b *JobBuilder) Label(key, value string) *JobBuilder {
	if b.j.Labels == nil {
		b.j.Labels = map[string]string{}
	}
	b.j.Labels[key] = value
	return b
}

// Affinity adds a term of affinity or anti-affinity to other jobs.
func (b *JobBuilder) Affinity(t cluster.JobTerm) *JobBuilder {
	b.details.Affinity = append(b.details.Affinity, t)
	return b
}

// WholeNodes requests whole nodes of one group, one for each replica. The job then has one
// task for each replica. Memory is what a replica needs of its node's devices together.
func (b *JobBuilder) WholeNodes(replicas int, memory string) *JobBuilder {
	b.count = replicas
	b.shape.Need.WholeNode = true
	b.whole = &cluster.WholeNodes{Replicas: replicas, NodesPerReplica: 1, Memory: Size(memory)}
	return b
}

// ModelReplica makes the job a replica of a model with the placement strategy cluster.Binpack or
// cluster.Spread.
func (b *JobBuilder) ModelReplica(s cluster.Strategy) *JobBuilder { b.shape.Strategy = s; return b }

// Set makes the job a replica of a set that should have the desired number of replicas.
func (b *JobBuilder) Set(name string, desired int) *JobBuilder {
	b.details.Set.Name, b.details.Set.Desired = name, desired
	return b
}

// Health sets the reported health of the replica.
func (b *JobBuilder) Health(h cluster.Health) *JobBuilder { b.details.Health = h; return b }

// Shape calls change with the shape of the tasks, to set any other field.
func (b *JobBuilder) Shape(change func(*cluster.Shape)) *JobBuilder {
	change(&b.shape)
	return b
}

// On binds the first tasks to the nodes, one task to each node in order. State panics if a
// task does not fit there.
func (b *JobBuilder) On(nodes ...string) *JobBuilder { b.nodes = nodes; return b }

// Started sets when the tasks that On binds started, in the same order, in nanoseconds
// since 1970. The last time applies to all remaining tasks.
func (b *JobBuilder) Started(at ...int64) *JobBuilder { b.started = at; return b }

// Build returns the job for use without a State. Its tasks are pending.
func (b *JobBuilder) Build() *cluster.Job {
	j, details := b.j, b.details
	j.JobDetails = &details
	alt := cluster.Alternative{Min: b.min, Whole: b.whole, Subgroups: slices.Clone(b.subgroups), Topology: b.topology}
	if alt.Min == 0 {
		alt.Min = b.count
	}
	for i := range b.count {
		shape := b.shape
		name := fmt.Sprintf("worker-%d", i)
		alt.Tasks = append(alt.Tasks, &cluster.Task{ID: j.ID + "/" + name, Name: name, Role: "worker", Index: i, Job: &j, Shape: &shape})
	}
	next := 0
	for g, n := range b.members {
		if next+n > b.count {
			panic(fmt.Sprintf("enginetest: %s has too few tasks for subgroup %q", j.ID, b.subgroups[g].Name))
		}
		for _, t := range alt.Tasks[next : next+n] {
			t.Subgroup = g + 1
		}
		next += n
	}
	j.Alternatives = []cluster.Alternative{alt}
	return &j
}

func (b *JobBuilder) addTo(s *cluster.State) error {
	if err := s.Apply(cluster.JobPut{Job: *b.Build()}); err != nil {
		return err
	}
	j := s.Job(b.j.ID)
	for i, name := range b.nodes {
		n, t := s.Node(name), j.Tasks()[i]
		if n == nil {
			return fmt.Errorf("no node %q", name)
		}
		claims, ok := n.Choose(t.Shape, nil)
		if !ok {
			return fmt.Errorf("no devices for %s on %s", t.ID, name)
		}
		started := int64(0)
		if len(b.started) > 0 {
			started = b.started[min(i, len(b.started)-1)]
		}
		if err := s.CanRun(t, n, claims); err != nil {
			return err
		}
		if err := s.Apply(cluster.SeenOn(t, n, claims, started)); err != nil {
			return err
		}
	}
	return nil
}
