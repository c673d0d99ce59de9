// Package enginetest builds small clusters for tests, and engines with few plugins. It is
// for the tests of plugins, also of plugins outside this repository.
//
// A test builds a State from nodes, queues, budgets and jobs, builds an engine from the
// plugin that it tests, runs a session, and compares the outcome:
//
//	state := enginetest.State(
//		enginetest.Node("a").CPU(96, "512Gi").GPUs(8, "A100", "80Gi"),
//		enginetest.Queue("team").Limit("nvidia.com/gpu", 8000), // thousandths of a device
//		enginetest.Job("train").Queue("team").Gang(2).Devices(4).CPU(8000, "64Gi"),
//	)
//	session := enginetest.Engine(enginetest.Fit(), plugin).Open(state, engine.Options{})
//	out, err := session.Run()
//	err = errors.Join(err, session.Close())
//	// out.Decisions binds job/train/worker-0 and job/train/worker-1 to node a.
//
// Fit is a plugin that checks for room. Without a plugin that does, tasks are placed on
// nodes that are full. To test a plugin with all plugins of Berth, build the engine with
// engine.New, standard.Registry and standard.Profile. A Scheduler runs several sessions
// on one State, with facts in between.
//
// Cores and devices are in thousandths, memory is in bytes or a text such as 80Gi, and
// times and durations are in nanoseconds, unless a comment says otherwise. A builder may be
// used for several States. Functions panic on invalid input instead of returning errors.
package enginetest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Part is an object that State adds to a State: a node, a queue, a budget or a job.
type Part interface{ addTo(*cluster.State) error }

// State builds a State from parts. Jobs are added after all other parts, whatever the
// order of the arguments.
func State(parts ...Part) *cluster.State {
	s := cluster.NewState()
	for _, late := range []bool{false, true} {
		for _, p := range parts {
			if _, isJob := p.(*JobBuilder); isJob != late {
				continue
			}
			if err := p.addTo(s); err != nil {
				panic("enginetest: " + err.Error())
			}
		}
	}
	return s
}

// Size parses an amount of memory: a whole number with the unit Ki, Mi, Gi or Ti, such as
// "80Gi", or a plain number of bytes.
func Size(s string) cluster.Bytes {
	shift := 0
	for i, unit := range []string{"Ki", "Mi", "Gi", "Ti"} {
		if strings.HasSuffix(s, unit) {
			s, shift = strings.TrimSuffix(s, unit), 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("enginetest: %q is not a size", s))
	}
	return cluster.Bytes(n << shift)
}

// NodeBuilder builds a node. Each method changes the builder and returns it.
type NodeBuilder struct{ n cluster.Node }

// Node starts a node with the name. It is ready, and has no resources and no devices.
func Node(name string) *NodeBuilder {
	return &NodeBuilder{cluster.Node{Name: name, Labels: map[string]string{}}}
}

// CPU adds whole cores and memory, such as "512Gi", to the node.
func (b *NodeBuilder) CPU(cores int, memory string) *NodeBuilder {
	return b.Resource(cluster.CPU, int64(cores)*1000).Resource(cluster.Memory, int64(Size(memory)))
}

// Resource adds a resource to the node, with its capacity: cores in thousandths, memory in
// bytes, and any other resource as a count. Each resource may be added once.
func (b *NodeBuilder) Resource(name string, amount int64) *NodeBuilder {
	b.n.Resources = append(b.n.Resources, cluster.Ledger{Name: name, Capacity: amount})
	return b
}

// GPUs adds count devices of the product, such as NVIDIA-L4, each with the memory,
// such as "24Gi". Their type is cuda, and their UUIDs are GPU-NODE-0, GPU-NODE-1, …
func (b *NodeBuilder) GPUs(count int, product, memory string) *NodeBuilder {
	for range count {
		i := len(b.n.Devices)
		b.n.Devices = append(b.n.Devices, cluster.Device{
			DeviceSpec: &cluster.DeviceSpec{Product: product, Type: "cuda", Memory: Size(memory), NUMA: -1},
			UUID:       fmt.Sprintf("GPU-%s-%d", b.n.Name, i),
			Index:      int32(i),
		})
	}
	return b
}

// Links sets the NVLink domains of the node's devices, from the first device on. "" means that
// the domain of a device is not known.
func (b *NodeBuilder) Links(domains ...string) *NodeBuilder {
	for i, d := range domains {
		b.n.Devices[i].OwnSpec().Link = d
	}
	return b
}

// NUMA sets the NUMA nodes of the node's devices, from the first device on. -1 means that the
// NUMA node of a device is not known.
func (b *NodeBuilder) NUMA(nodes ...int) *NodeBuilder {
	for i, n := range nodes {
		b.n.Devices[i].OwnSpec().NUMA = n
	}
	return b
}

// PCIe sets the PCIe roots of the node's devices, from the first device on.
func (b *NodeBuilder) PCIe(roots ...string) *NodeBuilder {
	for i, r := range roots {
		b.n.Devices[i].OwnSpec().PCIe = r
	}
	return b
}

// Slices adds count MIG slices of the profile, such as 1g.10gb, all of one device. Memory
// is that of each slice.
func (b *NodeBuilder) Slices(count int, product, profile, memory string) *NodeBuilder {
	from := len(b.n.Devices)
	b.GPUs(count, product, memory)
	for i := from; i < len(b.n.Devices); i++ {
		d := &b.n.Devices[i]
		d.OwnSpec()
		d.Profile, d.Parent = profile, fmt.Sprintf("GPU-%s-%d", b.n.Name, from)
		d.UUID = fmt.Sprintf("MIG-%s-%d", b.n.Name, i)
	}
	return b
}

// Label sets a label of the node.
func (b *NodeBuilder) Label(key, value string) *NodeBuilder {
	b.n.Labels[key] = value
	return b
}

// Cell sets the cell of the node.
func (b *NodeBuilder) Cell(name string) *NodeBuilder {
	b.n.Cell = name
	return b
}

// Taint adds a taint with the effect cluster.NoSchedule, cluster.PreferNoSchedule or
// cluster.NoExecute.
func (b *NodeBuilder) Taint(key, value string, effect cluster.Effect) *NodeBuilder {
	b.n.Taints = append(b.n.Taints, cluster.Taint{Key: key, Value: value, Effect: effect})
	return b
}

// Phase sets the phase of the node. Only nodes with the phase READY, or none, are ready.
func (b *NodeBuilder) Phase(p cluster.Phase) *NodeBuilder {
	b.n.Phase = p
	return b
}

// Artifact adds a file to the node, such as that of a model, in the given state, such as
// cluster.Ready.
func (b *NodeBuilder) Artifact(name string, state cluster.ArtifactState) *NodeBuilder {
	if b.n.Artifacts == nil {
		b.n.Artifacts = map[string]cluster.ArtifactState{}
	}
	b.n.Artifacts[name] = state
	return b
}

// SupportedIsolation sets the isolation that the node supports.
func (b *NodeBuilder) SupportedIsolation(a cluster.SupportedIsolation) *NodeBuilder {
	b.n.SupportedIsolation = a
	return b
}

// With calls change with the node, to set any other field.
func (b *NodeBuilder) With(change func(*cluster.Node)) *NodeBuilder {
	change(&b.n)
	return b
}

// Build returns the node for use without a State.
func (b *NodeBuilder) Build() *cluster.Node {
	s := cluster.NewState()
	if err := b.addTo(s); err != nil {
		panic("enginetest: " + err.Error())
	}
	return s.Node(b.n.Name)
}

func (b *NodeBuilder) addTo(s *cluster.State) error {
	// A builder may be added to several States, which must not share ledgers.
	n := b.n
	n.Labels = maps.Clone(b.n.Labels)
	n.Resources = slices.Clone(b.n.Resources)
	n.Devices = slices.Clone(b.n.Devices)
	n.Artifacts = maps.Clone(b.n.Artifacts)
	return s.Apply(cluster.NodePut{Node: n})
}

// QueueBuilder builds a queue. Each method changes the builder and returns it.
type QueueBuilder struct{ q cluster.Queue }

// Queue starts a queue with the name, at the top of the tree of queues, of the Standard
// tier, with weight 1, without quota and without limits.
func Queue(name string) *QueueBuilder { return &QueueBuilder{cluster.Queue{Name: name}} }

// Tier sets the tier: cluster.TierGuaranteed, cluster.TierStandard or
// cluster.TierScavenger.
func (b *QueueBuilder) Tier(t cluster.Tier) *QueueBuilder { b.q.Tier = t; return b }

// Priority sets the priority of the queue among the queues of its tier.
func (b *QueueBuilder) Priority(p int32) *QueueBuilder { b.q.Priority = p; return b }

// Limit sets the limit of a resource: devices and cores in thousandths, memory in bytes,
// and any other resource as a count.
func (b *QueueBuilder) Limit(name string, amount int64) *QueueBuilder {
	b.q.Limits = b.q.Limits.With(name, amount)
	return b
}

// Parent puts the queue below the queue with the name.
func (b *QueueBuilder) Parent(name string) *QueueBuilder { b.q.Parent = name; return b }

// Quota sets the quota of a resource: devices and cores in thousandths, memory in bytes,
// and any other resource as a count.
func (b *QueueBuilder) Quota(name string, amount int64) *QueueBuilder {
	b.q.Quota = b.q.Quota.With(name, amount)
	return b
}

// Weight sets the proportion in which the queue gets what is left after quotas, for all
// resources.
func (b *QueueBuilder) Weight(w int64) *QueueBuilder {
	b.q.Weight, b.q.Weightless = w, w == 0
	return b
}

// MinRun sets how long tasks of the queue are protected after their start: from being
// preempted or moved, and from being reclaimed. With 0, the queue above decides.
func (b *QueueBuilder) MinRun(beforePreempt, beforeReclaim time.Duration) *QueueBuilder {
	b.q.MinRunBeforePreempt, b.q.MinRunBeforeReclaim = int64(beforePreempt), int64(beforeReclaim)
	return b
}

// OverQuotaWeight sets the weight of the queue for one resource, instead of Weight.
func (b *QueueBuilder) OverQuotaWeight(name string, w int64) *QueueBuilder {
	b.q.OverQuotaWeight = b.q.OverQuotaWeight.With(name, w)
	return b
}

// Past adds how much of a resource the queue held between two times, in nanoseconds since
// 1970. The amount has the unit of Quota.
func (b *QueueBuilder) Past(from, to int64, name string, amount int64) *QueueBuilder {
	b.q.Past = append(b.q.Past, cluster.Usage{From: from, To: to, Resources: cluster.Resources{{Name: name, Value: amount}}})
	return b
}

// Created sets when the queue was created, in nanoseconds since 1970.
func (b *QueueBuilder) Created(at int64) *QueueBuilder { b.q.Created = at; return b }

func (b *QueueBuilder) addTo(s *cluster.State) error {
	q := b.q
	return s.Apply(cluster.QueuePut{Queue: q})
}

// Engine builds an engine with a profile of the plugins, in this order, each with weight 1.
func Engine(plugins ...engine.Plugin) *engine.Engine {
	r := engine.NewRegistry()
	var profile engine.Profile
	for _, p := range plugins {
		if err := r.RegisterPluginBuilder(p.Name(), func(engine.Arguments) (engine.Plugin, error) { return p, nil }); err != nil {
			panic("enginetest: " + err.Error())
		}
		profile = append(profile, engine.PluginConfig{Name: p.Name()})
	}
	e, err := engine.New(r, profile)
	if err != nil {
		panic("enginetest: " + err.Error())
	}
	return e
}
