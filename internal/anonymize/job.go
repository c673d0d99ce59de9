package anonymize

import "github.com/berth-project/berth/api/v1alpha1"

func (n berthObjects) job(o *v1alpha1.Job) *v1alpha1.Job {
	s := &o.Spec
	out := &v1alpha1.Job{TypeMeta: berthKind(v1alpha1.KindJob), ObjectMeta: n.meta(n.workloads.of(o.Name), o.Namespace, o.Labels)}
	out.CreationTimestamp = n.time(o.CreationTimestamp)
	out.Spec = v1alpha1.JobSpec{
		Queue: n.queues.of(s.Queue), SchedulerName: n.schedulers.of(s.SchedulerName), Priority: s.Priority, Preemptible: s.Preemptible,
		MinMember: s.MinMember, Subgroups: each(s.Subgroups, n.subgroup), MinSubgroups: s.MinSubgroups,
		Topology: optional(s.Topology, n.topology), RunTime: s.RunTime, StaleGrace: s.StaleGrace, PreemptionDelay: s.PreemptionDelay,
		Cells: each(s.Cells, n.cells.of), NodeSelector: n.labels(s.NodeSelector), Tolerations: each(s.Tolerations, n.toleration),
		Affinity: optional(s.Affinity, n.affinity), Isolation: optional(s.Isolation, n.isolation), Placement: s.Placement,
		Tasks: each(s.Tasks, n.taskEntry), Alternatives: each(s.Alternatives, n.alternative),
	}
	out.Status = v1alpha1.JobStatus{
		Alternative: n.alternatives.of(o.Status.Alternative), TornSince: n.optionalTime(o.Status.TornSince), Evicted: n.optionalTime(o.Status.Evicted),
		Placements: each(o.Status.Placements, func(p v1alpha1.TaskPlacement) v1alpha1.TaskPlacement { return n.placement(p, n.task(p.Task)) }),
	}
	return out
}

func (n berthObjects) placement(p v1alpha1.TaskPlacement, task string) v1alpha1.TaskPlacement {
	return v1alpha1.TaskPlacement{Task: task, Node: n.nodes.of(p.Node), State: p.State, Devices: p.Devices, Started: n.optionalTime(p.Started)}
}

func (n berthObjects) alternative(a v1alpha1.Alternative) v1alpha1.Alternative {
	return v1alpha1.Alternative{
		Name: n.alternatives.of(a.Name), MinMember: a.MinMember, Subgroups: each(a.Subgroups, n.subgroup), MinSubgroups: a.MinSubgroups,
		Topology: optional(a.Topology, n.topology), Placement: a.Placement, Tasks: each(a.Tasks, n.taskEntry),
	}
}

func (n berthObjects) subgroup(g v1alpha1.Subgroup) v1alpha1.Subgroup {
	return v1alpha1.Subgroup{
		Name: n.subgroups.of(g.Name), Parent: n.subgroups.of(g.Parent), Tasks: each(g.Tasks, n.roles.of), MinMember: g.MinMember,
		MinSubgroups: g.MinSubgroups, Topology: optional(g.Topology, n.topology),
	}
}

func (n berthObjects) topology(t *v1alpha1.Topology) *v1alpha1.Topology {
	return &v1alpha1.Topology{Required: n.key(t.Required), Preferred: each(t.Preferred, n.key)}
}

func (n berthObjects) taskEntry(t v1alpha1.Task) v1alpha1.Task {
	return v1alpha1.Task{
		Name: n.roles.of(t.Name), Replicas: t.Replicas, Resources: n.amounts(t.Resources), Devices: t.Devices,
		Isolation: optional(t.Isolation, n.isolation), NodeSelector: n.labels(t.NodeSelector), Affinity: optional(t.Affinity, n.nodeAffinity),
	}
}

func (n *Names) isolation(i *v1alpha1.Isolation) *v1alpha1.Isolation {
	return &v1alpha1.Isolation{CPU: i.CPU, GPU: i.GPU, Session: n.sessions.of(i.Session)}
}

func (n berthObjects) toleration(t v1alpha1.Toleration) v1alpha1.Toleration {
	return v1alpha1.Toleration{Key: n.key(t.Key), Operator: t.Operator, Value: n.value(t.Key, t.Value), Effect: t.Effect}
}

func (n berthObjects) affinity(a *v1alpha1.Affinity) *v1alpha1.Affinity {
	return &v1alpha1.Affinity{Required: each(a.Required, n.nodeTerm), Preferred: each(a.Preferred, n.preferredTerm), Jobs: each(a.Jobs, n.jobTerm)}
}

func (n berthObjects) nodeAffinity(a *v1alpha1.NodeAffinity) *v1alpha1.NodeAffinity {
	return &v1alpha1.NodeAffinity{Required: each(a.Required, n.nodeTerm), Preferred: each(a.Preferred, n.preferredTerm)}
}

func (n berthObjects) nodeTerm(t v1alpha1.NodeTerm) v1alpha1.NodeTerm {
	return v1alpha1.NodeTerm{MatchExpressions: each(t.MatchExpressions, n.requirement)}
}

func (n berthObjects) preferredTerm(t v1alpha1.PreferredTerm) v1alpha1.PreferredTerm {
	return v1alpha1.PreferredTerm{Weight: t.Weight, MatchExpressions: each(t.MatchExpressions, n.requirement)}
}

func (n berthObjects) jobTerm(t v1alpha1.JobTerm) v1alpha1.JobTerm {
	return v1alpha1.JobTerm{
		Selector: n.jobSelector(t.Selector), Within: n.key(t.Within), Anti: t.Anti, Weight: t.Weight, Namespaces: each(t.Namespaces, n.namespaces.of),
	}
}
