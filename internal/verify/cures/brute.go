package cures

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// changes returns single changes of the manifests, each as arguments of berth whatif, that a user
// may make so that the workload fits.
func (in Input) changes(workload string) [][]string {
	b := &brute{in: in}
	own, members := in.find(workload), in.members(workload)
	if members != nil {
		own = -1
	} else if own < 0 { // a replica of a model
		own = in.find(workload[:strings.LastIndexByte(workload, '-')])
	}
	for i, o := range in.Objects {
		switch o["kind"] {
		case "Node":
			b.node(o)
		case "Queue":
			b.queue(o)
		case "Job", "Pod", "Model":
			if i != own && !isMember(o) {
				b.other(o)
			}
		}
	}
	for _, gang := range in.gangs() {
		if gang != workload {
			b.add("--remove", gang)
		}
	}
	if members != nil {
		b.gang(workload, members)
	}
	if own >= 0 {
		b.own(in.Objects[own])
	}
	for _, later := range []time.Duration{time.Minute, time.Hour, 48 * time.Hour} {
		b.add("--wait-until", start.Add(later).Format(time.RFC3339))
	}
	return b.out
}

type brute struct {
	in  Input
	out [][]string
}

func (b *brute) add(arguments ...string) { b.out = append(b.out, arguments) }

func (b *brute) set(o Object, field string, value any) {
	text := ""
	if value != nil {
		text = fmt.Sprint(value)
	}
	b.add("--set", id(o)+"."+field+"="+text)
}

func (b *brute) node(o Object) {
	name := o["metadata"].(Object)["name"].(string)
	for _, n := range []int{1, 2, 4} {
		b.add("--add-nodes", fmt.Sprintf("%s=%d", name, n))
	}
	var open []string
	for _, field := range []string{"spec.unschedulable", "status.state", "status.conditions"} {
		open = append(open, "--set", id(o)+"."+field+"=")
	}
	b.add(open...)
}

func (b *brute) queue(o Object) {
	spec := section(o, "spec")
	for _, field := range []string{"limits", "quota"} {
		for _, name := range slices.Sorted(maps.Keys(section(spec, field))) {
			b.set(o, "spec."+field+"."+name, nil)
			b.set(o, "spec."+field+"."+name, "1000")
		}
	}
	b.set(o, "spec.quota.nvidia.com/gpu", 1000)
}

func (b *brute) other(o Object) {
	b.add("--remove", id(o))
	if n, ok := number(section(o, "spec")["replicas"]); ok && o["kind"] == "Model" && n > 1 {
		b.set(o, "spec.replicas", n-1)
	}
}

// own adds changes of the workload itself.
func (b *brute) own(o Object) {
	spec := section(o, "spec")
	b.set(o, "spec.priority", 1000)
	switch o["kind"] {
	case "Pod":
		b.set(o, "metadata.labels.berth.dev/preemptible", `"true"`)
	default:
		b.set(o, "spec.preemptible", true)
	}
	for _, field := range []string{"nodeSelector", "affinity", "cells", "isolation", "topology", "minMember", "subgroups", "placement.nodeSelector", "placement.cells", "placement.devices", "placement.devicesPerReplica", "parallelism", "draft"} {
		b.set(o, "spec."+field, nil)
	}
	b.set(o, "metadata.annotations", nil)
	b.set(o, fmt.Sprintf("spec.tolerations[%d]", len(list(spec["tolerations"]))), "{operator: Exists}")
	if o["kind"] == "Model" {
		for _, x := range []string{"context=1024", "sequences=1", "kvCacheBits=8", "placement.distributed=true", "placement.cpuOffload=true", "gpuMemoryUtilization=0.95", "gpuMemoryUtilization=0.25", "replicas=1"} {
			b.add("--set", id(o)+".spec."+x)
		}
		return
	}
	b.set(o, "spec.minMember", 1)
	for i, t := range list(spec["tasks"]) {
		at := fmt.Sprintf("spec.tasks[%d].", i)
		for _, field := range []string{"nodeSelector", "affinity", "isolation", "devices.products", "devices.sameProduct", "devices.partition"} {
			b.set(o, at+field, nil)
		}
		devices := section(t.(Object), "devices")
		if n, ok := number(devices["count"]); ok {
			for less := 1; less < n; less++ {
				b.set(o, at+"devices.count", less)
			}
		}
		for field, least := range map[string]string{"memory": "1Gi", "share": "0.01", "totalMemory": "1Gi"} {
			if devices[field] != nil {
				b.set(o, at+"devices."+field, least)
			}
		}
		if devices["partition"] != nil {
			b.set(o, at+"devices.partition", "1g.10gb")
		}
		for name, least := range map[string]string{"cpu": "100m", "memory": "1Mi"} {
			if section(t.(Object), "resources")[name] != nil {
				b.set(o, at+"resources."+name, least)
			}
		}
		b.set(o, at+"replicas", 1)
	}
	for i, c := range list(spec["containers"]) {
		for name, least := range map[string]string{"cpu": "100m", "memory": "1Mi", "nvidia.com/gpu": "1"} {
			if section(section(c.(Object), "resources"), "limits")[name] != nil {
				b.set(o, fmt.Sprintf("spec.containers[%d].resources.limits.%s", i, name), least)
			}
		}
	}
}

// section returns the object in a field, or an empty one.
func section(o Object, field string) Object {
	out, _ := o[field].(Object)
	return out
}

func list(v any) []any {
	out, _ := v.([]any)
	return out
}

func number(v any) (int, bool) {
	switch n := v.(type) {
	case int:
		return n, true
	case float64:
		return int(n), true
	}
	return 0, false
}
