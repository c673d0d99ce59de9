package manifest

import (
	"slices"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/nearest"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
)

// The API versions of what kubectl prints.
const (
	coreVersion   = "v1"
	policyVersion = "policy/v1"
)

// The kinds that are read, by API version.
var (
	ownKinds    = []string{v1alpha1.KindNode, v1alpha1.KindQueue, v1alpha1.KindJob, v1alpha1.KindModel, v1alpha1.KindDisruptionBudget, v1alpha1.KindSchedulerConfiguration, v1alpha1.KindScenario}
	coreKinds   = []string{"Node", "Pod", "List", "NodeList", "PodList"}
	policyKinds = []string{"PodDisruptionBudget", "PodDisruptionBudgetList"}
)

const (
	whatIsRead = "berth reads Node, Queue, Job, Model, DisruptionBudget, SchedulerConfiguration and Scenario of " + v1alpha1.APIVersion +
		", Node, Pod, NodeList, PodList and List of v1, and PodDisruptionBudget and PodDisruptionBudgetList of policy/v1"
	dump = "kubectl get nodes,pods,pdb -A -o yaml"
)

// read takes one object, or a list of them, into the bundle.
func (b *Bundle) read(file string, n *yaml.Node, errs *Errors) {
	b.readAs(file, n, "", "", errs)
}

// readAs reads an object whose list already said what its items are; kubectl
// get --raw leaves both out of them.
func (b *Bundle) readAs(file string, n *yaml.Node, version, kind string, errs *Errors) {
	objects, wrong := b.count(), len(*errs)
	defer func() {
		if b.count() == objects && len(*errs) > wrong {
			b.lost++
		}
	}()
	n = resolve(n)
	src := &source{file: file, start: position{n.Line, n.Column}, root: n}
	r := reporter{src, errs}
	if n.Kind != yaml.MappingNode {
		r.errorf(nil, "want an object with apiVersion and kind, have %s%s", describe(n), listRemedy(n))
		return
	}
	if v := text(n, "apiVersion"); v != "" {
		version = v
	}
	if k := text(n, "kind"); k != "" {
		kind = k
	}
	switch version {
	case v1alpha1.APIVersion:
		b.readOwn(kind, n, r)
	case coreVersion:
		b.readCore(kind, n, r)
	case policyVersion:
		b.readPolicy(kind, n, r)
	default:
		r.unknownVersion(version, kind)
	}
}

func listRemedy(n *yaml.Node) string {
	if n.Kind == yaml.SequenceNode {
		return "; put the objects under items of {apiVersion: v1, kind: List}, or separate them with ---"
	}
	return ""
}

func (r reporter) unknownVersion(version, kind string) {
	own, core := slices.Contains(ownKinds, kind), slices.Contains(coreKinds, kind)
	var remedy string
	switch {
	case own && core:
		remedy = "write " + v1alpha1.APIVersion + " for Berth's own " + kind + ", or v1 for one of Kubernetes"
	case own:
		remedy = "write apiVersion: " + v1alpha1.APIVersion
	case core:
		remedy = "write apiVersion: v1"
	case slices.Contains(policyKinds, kind):
		remedy = "write apiVersion: " + policyVersion
	case kind == "":
		remedy = whatIsRead
	default:
		r.unknownKind(kind, slices.Concat(ownKinds, coreKinds, policyKinds))
		return
	}
	if version == "" {
		r.errorf(path{"apiVersion"}, "apiVersion is missing; %s", remedy)
		return
	}
	r.errorf(path{"apiVersion"}, "unknown apiVersion %s; %s", quote(version), remedy)
}

func (r reporter) unknownKind(kind string, candidates []string) {
	if kind == "" {
		r.errorf(path{"kind"}, "kind is missing; %s", whatIsRead)
		return
	}
	if n, ok := nearest.Of(kind, candidates); ok {
		r.errorf(path{"kind"}, "kind %s is not read; did you mean %s? %s", quote(kind), quote(n), whatIsRead)
		return
	}
	r.errorf(path{"kind"}, "kind %s is not read; %s. A dump of what counts is: %s", quote(kind), whatIsRead, dump)
}

func (b *Bundle) readOwn(kind string, n *yaml.Node, r reporter) {
	name := path{"metadata", "name"}
	switch kind {
	case v1alpha1.KindNode:
		if o := decode[v1alpha1.Node](n, r, true); o != nil {
			makeNode(o, r)
			b.Nodes = append(b.Nodes, o)
			places := []path{name}
			if len(o.Status.FreeMemory) > 0 {
				places = append(places, path{"status", "freeMemory"})
			}
			b.keep(o, r, places...)
		}
	case v1alpha1.KindQueue:
		if o := decode[v1alpha1.Queue](n, r, true); o != nil {
			makeQueue(o, &surroundings{}, r)
			b.Queues = append(b.Queues, o)
			b.keep(o, r, queuePlaces(o)...)
		}
	case v1alpha1.KindJob:
		if o := decode[v1alpha1.Job](n, r, true); o != nil {
			makeJob(o, &surroundings{}, r)
			b.Jobs = append(b.Jobs, o)
			places := []path{name, {"spec", "queue"}, {"spec", "tasks"}, {"status", "alternative"}}
			for i := range o.Status.Placements {
				at := path{"status", "placements", i}
				places = append(places, at, at.add("node"), at.add("devices"), at.add("started"))
			}
			b.keep(o, r, places...)
		}
	case v1alpha1.KindModel:
		if o := decode[v1alpha1.Model](n, r, true); o != nil {
			makeModel(o, &surroundings{}, r)
			b.Models = append(b.Models, o)
			b.keep(o, r, modelPlaces(o)...)
		}
	case v1alpha1.KindDisruptionBudget:
		if o := decode[v1alpha1.DisruptionBudget](n, r, true); o != nil {
			makeBudget(o, r)
			b.Budgets = append(b.Budgets, o)
			b.keep(o, r, name)
		}
	case v1alpha1.KindSchedulerConfiguration:
		if o := decode[v1alpha1.SchedulerConfiguration](n, r, true); o != nil {
			b.configurations = append(b.configurations, configuration(o, r))
			r.src.forget()
		}
	case v1alpha1.KindScenario:
		if o := decode[v1alpha1.Scenario](n, r, true); o != nil {
			checkName(o.Name, "scenario", r)
			checkTime(o.Now, path{"now"}, r)
			checkExpectation(&o.Expect, r)
			checkCourse(o, r)
			b.scenarios = append(b.scenarios, o)
			b.keep(o, r)
		}
	case v1alpha1.KindSnapshot:
		r.errorf(nil, "a snapshot is one JSON document in a file of its own, and begins with apiVersion, kind and version, as berth simulate --snapshot-out writes it")
	default:
		r.unknownKind(kind, ownKinds)
	}
}

func (b *Bundle) readCore(kind string, n *yaml.Node, r reporter) {
	name := path{"metadata", "name"}
	switch kind {
	case "Node":
		if o := decode[corev1.Node](n, r, false); o != nil {
			makeCoreNode(o, r)
			b.CoreNodes = append(b.CoreNodes, o)
			b.keep(o, r, name)
		}
	case "Pod":
		if o := decode[corev1.Pod](n, r, false); o != nil {
			makePod(o, &surroundings{}, r)
			b.Pods = append(b.Pods, o)
			b.keep(o, r, name, path{"spec", "nodeName"}, path{"spec", "containers"},
				path{"metadata", "labels", v1alpha1.LabelQueue}, path{"metadata", "annotations", v1alpha1.LabelQueue})
		}
	case "List":
		b.readItems(n, "", "", r)
	case "NodeList":
		b.readItems(n, coreVersion, "Node", r)
	case "PodList":
		b.readItems(n, coreVersion, "Pod", r)
	default:
		if slices.Contains(policyKinds, kind) {
			r.unknownVersion(coreVersion, kind)
			return
		}
		r.unknownKind(kind, coreKinds)
	}
}

func (b *Bundle) readPolicy(kind string, n *yaml.Node, r reporter) {
	switch kind {
	case "PodDisruptionBudget":
		if o := decode[policyv1.PodDisruptionBudget](n, r, false); o != nil {
			makeCoreBudget(o, r)
			b.CoreBudgets = append(b.CoreBudgets, o)
			b.keep(o, r, path{"metadata", "name"})
		}
	case "PodDisruptionBudgetList":
		b.readItems(n, policyVersion, "PodDisruptionBudget", r)
	default:
		r.unknownKind(kind, policyKinds)
	}
}

func (b *Bundle) readItems(n *yaml.Node, version, kind string, r reporter) {
	items := entry(n, "items")
	if items == nil || isNull(resolve(items)) {
		return
	}
	if items = resolve(items); items.Kind != yaml.SequenceNode {
		r.errorf(path{"items"}, "want a list, have %s", describe(items))
		return
	}
	for _, item := range items.Content {
		b.readAs(r.src.file, item, version, kind, r.errs)
	}
}

// decode returns nil if anything is wrong: checking half an object would only
// report the same mistakes again.
func decode[T any](n *yaml.Node, r reporter, strict bool) *T {
	out := new(T)
	if errs := decodeAt(n, r.src.file, nil, out, strict); len(errs) > 0 {
		*r.errs = append(*r.errs, errs...)
		return nil
	}
	return out
}

// keep remembers where an object was written once it has been checked.
func (b *Bundle) keep(object any, r reporter, places ...path) {
	r.src.forget(places...)
	b.remember(object, r.src)
}
