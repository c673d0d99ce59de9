package cures

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

const apiVersion = "berth.dev/v1alpha1"

// start is the newest time in a random input.
var start = time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)

// Random returns the input with the seed. Half of the inputs are fresh: nothing runs. The others
// are settled: the workloads of a fresh input run as berth simulate placed them, and more
// workloads have arrived.
func Random(seed uint64) (Input, error) {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1))}
	g.dump = g.chance(25)
	g.cells = g.chance(15)
	g.nodes()
	g.queues()
	settled := g.chance(50)
	g.workloads(2 + g.IntN(8))
	if !settled {
		return g.in, nil
	}
	if err := g.settle(); err != nil {
		return g.in, err
	}
	g.workloads(1 + g.IntN(5))
	return g.in, nil
}

// generator makes a random input.
type generator struct {
	*rand.Rand
	in     Input
	dump   bool // the objects are those of Kubernetes
	cells  bool
	leaves []string // the queues that may have workloads
	made   int      // workloads
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g *generator, list ...T) T { return list[g.IntN(len(list))] }

func (g *generator) add(o Object) { g.in.Objects = append(g.in.Objects, o) }

// product is a type of device.
type product struct {
	name   string
	memory int // GiB
	slices []string
}

var products = []product{
	{"NVIDIA-L4", 24, nil},
	{"NVIDIA-A100", 80, []string{"1g.10gb", "2g.20gb", "3g.40gb"}},
	{"NVIDIA-H100", 80, []string{"1g.10gb", "3g.40gb"}},
}

func (g *generator) nodes() {
	count := 1 + g.IntN(7)
	kind := pick(g, products...)
	size := pick(g, 1, 2, 4, 8)
	for i := range count {
		if g.chance(35) {
			kind, size = pick(g, products...), pick(g, 1, 2, 4, 8)
		}
		name := fmt.Sprintf("gpu-%d", i)
		labels := Object{"rack": fmt.Sprintf("r%d", i/2), "pool": pick(g, "blue", "green"), "disk": pick(g, "ssd", "hdd")}
		var taints []any
		if g.chance(20) {
			taints = append(taints, Object{"key": "dedicated", "value": pick(g, "a", "b"), "effect": "NoSchedule"})
		}
		closed := g.chance(10)
		if g.dump {
			g.coreNode(name, kind, size, labels, taints, closed)
			continue
		}
		spec := Object{"resources": Object{"cpu": pick(g, 8, 16, 64), "memory": pick(g, "64Gi", "256Gi")}}
		devices := Object{"product": kind.name, "count": size, "memory": fmt.Sprintf("%dGi", kind.memory)}
		switch {
		case len(kind.slices) > 0 && g.chance(15):
			profile := pick(g, kind.slices...)
			devices["partitions"] = []any{Object{"profile": profile, "count": pick(g, 1, 2), "memory": "10Gi"}}
		case g.chance(10):
			devices["sharing"] = Object{"strategy": pick(g, "time-slicing", "mps"), "replicas": pick(g, 2, 4)}
		}
		spec["devices"] = devices
		if len(taints) > 0 {
			spec["taints"] = taints
		}
		if g.cells {
			spec["cell"] = pick(g, "c1", "c2")
		}
		if g.chance(20) {
			spec["isolation"] = Object{"gpu": []any{"SessionExclusive", "DeviceExclusive"}, "cpu": []any{"WholeCore"}}
		}
		node := Object{"apiVersion": apiVersion, "kind": "Node", "metadata": Object{"name": name, "labels": labels}, "spec": spec}
		if closed && g.chance(50) {
			node["status"] = Object{"state": "MAINTENANCE"}
		} else if closed {
			spec["unschedulable"] = true
		}
		g.add(node)
	}
}

func (g *generator) coreNode(name string, kind product, size int, labels Object, taints []any, closed bool) {
	labels["kubernetes.io/hostname"] = name
	labels["nvidia.com/gpu.product"] = kind.name
	labels["nvidia.com/gpu.count"] = fmt.Sprint(size)
	labels["nvidia.com/gpu.memory"] = fmt.Sprint(kind.memory * 1024)
	spec := Object{}
	if len(taints) > 0 {
		spec["taints"] = taints
	}
	ready := "True"
	if closed && g.chance(50) {
		ready = "False"
	} else if closed {
		spec["unschedulable"] = true
		spec["taints"] = append(taints, Object{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
	}
	g.add(Object{"apiVersion": "v1", "kind": "Node", "metadata": Object{"name": name, "labels": labels}, "spec": spec, "status": Object{
		"allocatable": Object{"cpu": pick(g, "8", "16", "64"), "memory": pick(g, "64Gi", "256Gi"), "pods": "110", "nvidia.com/gpu": fmt.Sprint(size)},
		"conditions":  []any{Object{"type": "Ready", "status": ready}},
	}})
}

func (g *generator) queues() {
	g.leaves = []string{""}
	if g.chance(40) {
		return
	}
	parents := []string{""}
	if g.chance(40) {
		parents = []string{"dept-a", "dept-b"}
		for _, p := range parents {
			g.queue(p, "")
		}
	}
	for i := range 1 + g.IntN(3) {
		name := fmt.Sprintf("team-%d", i)
		g.queue(name, pick(g, parents...))
		g.leaves = append(g.leaves, name)
	}
}

func (g *generator) queue(name, parent string) {
	spec := Object{}
	if parent != "" {
		spec["parent"] = parent
	}
	if g.chance(20) {
		spec["tier"] = pick(g, "Guaranteed", "Scavenger")
	}
	quota := pick(g, 1, 2, 4, 8)
	if g.chance(50) {
		spec["quota"] = Object{"nvidia.com/gpu": quota}
	}
	if g.chance(35) {
		spec["limits"] = Object{"nvidia.com/gpu": quota * pick(g, 1, 1, 2)}
	}
	if g.chance(15) {
		spec["minRunTime"] = Object{pick(g, "beforePreempt", "beforeReclaim"): "30m"}
	}
	g.add(Object{"apiVersion": apiVersion, "kind": "Queue", "metadata": Object{"name": name}, "spec": spec})
}

// workloads adds pending workloads.
func (g *generator) workloads(count int) {
	for range count {
		g.made++
		switch {
		case g.dump && g.chance(25):
			g.gang(fmt.Sprintf("gang-%d", g.made))
		case g.dump:
			g.pod(fmt.Sprintf("pod-%d", g.made))
		case g.chance(15):
			g.model(fmt.Sprintf("model-%d", g.made))
		default:
			g.job(fmt.Sprintf("job-%d", g.made))
		}
	}
}

func (g *generator) metadata(name string) Object {
	return Object{
		"name": name, "labels": Object{"app": pick(g, "x", "y", "z")},
		"creationTimestamp": start.Add(-time.Duration(g.IntN(120)) * time.Minute).Format(time.RFC3339),
	}
}

// common sets fields that jobs and models share.
func (g *generator) common(spec Object) {
	if q := pick(g, g.leaves...); q != "" {
		spec["queue"] = q
	}
	if g.chance(30) {
		spec["priority"] = pick(g, 1, 5, 10)
	}
	if g.chance(35) {
		spec["preemptible"] = g.chance(80)
	}
	if g.chance(20) {
		spec["tolerations"] = []any{Object{"key": "dedicated", "value": pick(g, "a", "b"), "effect": "NoSchedule"}}
	}
	if g.chance(12) {
		spec["isolation"] = Object{"gpu": pick(g, "Shared", "DeviceExclusive")}
	}
	if g.chance(8) {
		spec["preemptionDelay"] = "30m"
	}
}

func (g *generator) selector() Object {
	if g.chance(70) {
		return Object{"pool": pick(g, "blue", "green", "gren")}
	}
	return Object{"pool": pick(g, "blue", "green"), "rack": pick(g, "r0", "r1", "r9")}
}

func (g *generator) job(name string) {
	spec := Object{}
	g.common(spec)
	if g.chance(20) {
		spec["nodeSelector"] = g.selector()
	}
	if g.cells && g.chance(40) {
		spec["cells"] = pick(g, []any{"c1"}, []any{"c2", "c1"}, []any{"c3"})
	}
	if g.chance(12) {
		spec["affinity"] = Object{"jobs": []any{Object{"selector": Object{"matchLabels": Object{"app": pick(g, "x", "y")}}, "anti": g.chance(70), "within": pick(g, "", "rack")}}}
	} else if g.chance(10) {
		spec["affinity"] = Object{"required": []any{Object{"matchExpressions": []any{Object{"key": "rack", "operator": "In", "values": []any{pick(g, "r0", "r1", "r7")}}}}}}
	}
	if g.chance(6) {
		spec["placement"] = Object{"unit": "Node"}
		spec["tasks"] = []any{Object{"name": "worker", "replicas": 1 + g.IntN(3)}}
	} else {
		g.tasks(spec)
	}
	g.add(Object{"apiVersion": apiVersion, "kind": "Job", "metadata": g.metadata(name), "spec": spec})
}

// tasks sets the tasks of a job.
func (g *generator) tasks(spec Object) {
	worker := g.task("worker")
	all := []any{worker}
	replicas := 1
	if g.chance(35) {
		replicas = 2 + g.IntN(4)
		worker["replicas"] = replicas
		if g.chance(40) {
			spec["minMember"] = 1 + g.IntN(replicas)
		}
		if g.chance(30) {
			spec["topology"] = Object{"required": "rack"}
		}
	}
	if g.chance(12) {
		all = append(all, g.task("leader"))
		if spec["minMember"] == nil && g.chance(50) {
			spec["subgroups"] = []any{Object{"name": "workers", "tasks": []any{"worker"}, "minMember": 1 + g.IntN(replicas)}}
		}
	}
	if g.chance(8) && spec["subgroups"] == nil {
		second := g.task("worker")
		delete(spec, "minMember")
		spec["alternatives"] = []any{Object{"name": "first", "tasks": all}, Object{"name": "second", "tasks": []any{second}}}
		return
	}
	spec["tasks"] = all
}

func (g *generator) task(name string) Object {
	out := Object{"name": name}
	if g.chance(40) {
		out["resources"] = Object{"cpu": pick(g, 1, 8, 32, 100), "memory": pick(g, "8Gi", "64Gi", "512Gi")}
	}
	if g.chance(5) {
		out["nodeSelector"] = Object{"disk": pick(g, "ssd", "hdd", "tape")}
	}
	devices := Object{}
	switch g.IntN(10) {
	case 0:
		devices["memory"] = pick(g, "10Gi", "20Gi", "60Gi", "100Gi")
	case 1:
		devices["share"] = pick(g, "0.25", "0.5", "0.75")
	case 2:
		devices["totalMemory"] = pick(g, "40Gi", "160Gi", "900Gi")
		devices["count"] = pick(g, 1, 2, 4)
	case 3:
		devices["partition"] = pick(g, "1g.10gb", "2g.20gb", "3g.40gb")
	case 4:
		return out // no device
	default:
		devices["count"] = pick(g, 1, 1, 2, 4, 8, 16)
	}
	if g.chance(15) {
		devices["products"] = []any{pick(g, "NVIDIA-L4", "NVIDIA-A100", "NVIDIA-H100")}
	}
	if g.chance(8) && devices["count"] != nil {
		devices["sameProduct"] = true
	}
	out["devices"] = devices
	return out
}

func (g *generator) model(name string) {
	spec := Object{"replicas": 1 + g.IntN(3)}
	g.common(spec)
	placement := Object{}
	switch g.IntN(3) {
	case 0:
		spec["source"] = Object{}
		spec["memory"] = Object{pick(g, "device", "total"): pick(g, "10Gi", "30Gi", "100Gi")}
	case 1:
		spec["source"] = Object{"preset": pick(g, "llama-3.1-8b-instruct", "phi-4")}
	default:
		spec["source"] = Object{"preset": "phi-4"}
		spec["sequences"] = pick(g, 4, 16)
	}
	if g.chance(20) {
		placement["nodeSelector"] = g.selector()
	}
	if g.cells && g.chance(30) {
		placement["cells"] = []any{pick(g, "c1", "c2")}
	}
	if len(placement) > 0 {
		spec["placement"] = placement
	}
	g.add(Object{"apiVersion": apiVersion, "kind": "Model", "metadata": g.metadata(name), "spec": spec})
}

func (g *generator) pod(name string) {
	meta := g.metadata(name)
	meta["namespace"] = pick(g, "default", "ml")
	labels := meta["labels"].(Object)
	if q := pick(g, g.leaves...); q != "" {
		labels["berth.dev/queue"] = q
	}
	if g.chance(35) {
		labels["berth.dev/preemptible"] = pick(g, "true", "true", "false")
	}
	limits := Object{"cpu": pick(g, "1", "8", "32"), "memory": pick(g, "8Gi", "64Gi", "512Gi")}
	if g.chance(85) {
		limits["nvidia.com/gpu"] = pick(g, "1", "1", "2", "4", "8", "16")
	}
	spec := Object{"containers": []any{Object{"name": "c", "image": "i", "resources": Object{"limits": limits}}}}
	if g.chance(30) {
		spec["priority"] = pick(g, 1, 5, 10)
	}
	if g.chance(20) {
		spec["nodeSelector"] = g.selector()
	}
	if g.chance(20) {
		spec["tolerations"] = []any{Object{"key": "dedicated", "operator": "Equal", "value": pick(g, "a", "b"), "effect": "NoSchedule"}}
	}
	if g.chance(15) {
		term := Object{"labelSelector": Object{"matchLabels": Object{"app": pick(g, "x", "y")}}, "topologyKey": pick(g, "kubernetes.io/hostname", "rack")}
		spec["affinity"] = Object{pick(g, "podAffinity", "podAntiAffinity"): Object{"requiredDuringSchedulingIgnoredDuringExecution": []any{term}}}
	} else if g.chance(10) {
		term := Object{"matchExpressions": []any{Object{"key": "rack", "operator": "In", "values": []any{pick(g, "r0", "r1", "r7")}}}}
		spec["affinity"] = Object{"nodeAffinity": Object{"requiredDuringSchedulingIgnoredDuringExecution": Object{"nodeSelectorTerms": []any{term}}}}
	}
	g.add(Object{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": Object{"phase": "Pending"}})
}

// settle simulates the input, and writes where tasks run into the manifests.
func (g *generator) settle() error {
	result, err := g.in.simulate()
	if err != nil {
		return err
	}
	running := map[string]Object{} // placements, by workload and task
	forms := map[string]string{}
	var order []string
	for i := range result.Decisions {
		d := &result.Decisions[i]
		key := d.Workload + " " + d.Task
		if d.Action == "Evict" {
			delete(running, key)
			continue
		}
		devices := []any{}
		for _, x := range d.Devices {
			devices = append(devices, x.Index)
		}
		started := start.Add(-time.Duration(g.IntN(60)) * time.Minute).Format(time.RFC3339)
		running[key] = Object{"task": d.Task, "node": d.Node, "devices": devices, "started": started}
		forms[d.Workload] = d.Alternative
		if !slices.Contains(order, key) {
			order = append(order, key)
		}
	}
	for _, key := range order {
		if p := running[key]; p != nil {
			workload, _, _ := strings.Cut(key, " ")
			g.place(workload, forms[workload], p)
		}
	}
	return nil
}

// place writes that a task of a workload runs.
func (g *generator) place(workload, form string, placement Object) {
	if members := g.in.members(workload); members != nil {
		for _, i := range members {
			if o := g.in.Objects[i]; section(o, "metadata")["name"] == placement["task"] {
				section(o, "spec")["nodeName"] = placement["node"]
				o["status"] = Object{"phase": "Running", "startTime": placement["started"]}
			}
		}
		return
	}
	i := g.in.find(workload)
	if i < 0 { // a replica of a model
		cut := strings.LastIndexByte(workload, '-')
		i = g.in.find(workload[:cut])
		var replica int
		fmt.Sscan(workload[cut+1:], &replica)
		status := field(g.in.Objects[i], "status")
		replicas := list(status["replicas"])
		at := slices.IndexFunc(replicas, func(r any) bool { return r.(Object)["replica"] == replica })
		if at < 0 {
			replicas, at = append(replicas, Object{"replica": replica, "form": form, "placements": []any{}}), len(replicas)
		}
		r := replicas[at].(Object)
		r["placements"] = append(list(r["placements"]), placement)
		status["replicas"] = replicas
		return
	}
	o := g.in.Objects[i]
	if o["kind"] == "Pod" {
		section(o, "spec")["nodeName"] = placement["node"]
		o["status"] = Object{"phase": "Running", "startTime": placement["started"]}
		return
	}
	status := field(o, "status")
	if form != "" {
		status["alternative"] = form
	}
	status["placements"] = append(list(status["placements"]), placement)
}

// field returns the object in a field, which is made if it is missing.
func field(o Object, name string) Object {
	if o[name] == nil {
		o[name] = Object{}
	}
	return o[name].(Object)
}
