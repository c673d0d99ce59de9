package anonymize

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/internal/manifest"
	corev1 "k8s.io/api/core/v1"
)

// Names are the names of a cluster and what replaces each of them.
type Names struct {
	nodes, hosts, cells, queues, budgets table
	namespaces, workloads                *table // the same one if IDs with and without a namespace are compared
	roles, subgroups, alternatives       table
	keys, values, resources              table
	files, uuids, links                  table
	sessions, schedulers, adapters       table
	classes, parts                       table             // parts of groups of pods
	presets                              map[string]bool   // presets that models name; their files have the same names
	configs                              map[string]string // what reduceConfigs returns

	now              int64 // the time of the decisions in the input, in nanoseconds since 1970
	earliest, latest int64 // of the times in the input and now
	shift            int64 // what is added to each time
}

// nameField is the field of nodes that node affinity may match like a label.
const nameField = "metadata.name"

// provisionedTaint is the key of the taint of nodes that are created for models.
const provisionedTaint = "sku"

// modelLabel is the label of nodes with the model for which the node was created.
const modelLabel = "berth.dev/model"

func newNames(b *manifest.Bundle) *Names {
	n := &Names{presets: map[string]bool{}}
	n.nodes = table{stem: "node", nest: true}
	n.hosts = table{stem: "host"}
	n.cells = table{stem: "cell"}
	n.queues = table{stem: "queue", keep: func(s string) bool { return s == cluster.DefaultQueue }}
	n.queues.of(cluster.DefaultQueue) // it exists even if no object names it
	n.budgets = table{stem: "budget"}
	n.workloads = &table{stem: "workload", nest: true}
	n.namespaces = &table{stem: "namespace", nest: true, keep: func(s string) bool { return s == "kai-resource-reservation" || s == "runai-reservation" }}
	if mixesNamespaces(b) {
		n.workloads.stem, n.namespaces = "name", n.workloads
	}
	n.roles = table{stem: "task", nest: true, keep: isLeadingRole}
	n.parts = table{stem: "part", keep: func(s string) bool { return isLeadingRole(s) || slices.Contains(replicaTypes, s) }}
	n.subgroups = table{stem: "subgroup"}
	n.alternatives = table{stem: "alternative", keep: isDefaultAlternative}
	n.keys = table{stem: "key", keep: isKnownKey}
	n.values = table{stem: "value", keep: isKnownValue}
	n.resources = table{stem: "example.com/resource", keep: isKnownResource}
	n.files = table{stem: "file", keep: func(s string) bool { return n.presets[s] }}
	n.uuids = table{stem: "GPU"}
	n.links = table{stem: "link"}
	n.sessions = table{stem: "session"}
	n.schedulers = table{stem: "scheduler"}
	n.adapters = table{stem: "adapter"}
	n.classes = table{stem: "class"}
	return n
}

func (n *Names) seal() {
	for _, t := range []*table{
		&n.nodes, &n.hosts, &n.cells, &n.queues, &n.budgets, n.workloads, &n.roles, &n.subgroups, &n.alternatives, &n.keys,
		&n.values, &n.resources, &n.files, &n.uuids, &n.links, &n.sessions, &n.schedulers, &n.adapters, &n.classes, &n.parts,
	} {
		t.seal()
	}
	if n.namespaces != n.workloads {
		n.namespaces.seal()
	}
}

// mixesNamespaces reports whether some jobs and models have a namespace and others do not.
// The name of one is then compared with the namespace of another.
func mixesNamespaces(b *manifest.Bundle) bool {
	with, without := false, false
	see := func(namespace string) { with, without = with || namespace != "", without || namespace == "" }
	for _, o := range b.Jobs {
		see(o.Namespace)
	}
	for _, o := range b.Models {
		see(o.Namespace)
	}
	return with && without
}

// replicaTypes are parts of jobs of the Training Operator, which have a meaning of their own.
var replicaTypes = []string{"chief", "evaluator", "ps", "scheduler", "server", "worker"}

// isLeadingRole reports whether the plugin TaskOrder places tasks of this name first unless
// its arguments list other names.
func isLeadingRole(name string) bool {
	return slices.Contains([]string{"leader", "master", "launcher"}, name)
}

// isDefaultAlternative reports whether the name is that of an alternative without a name.
func isDefaultAlternative(name string) bool {
	number, ok := strings.CutPrefix(name, "alternative ")
	return ok && isKnownValue(number)
}

// knownDomains are the domains of label keys that are kept. They are those of Kubernetes, of
// schedulers and of manufacturers.
var knownDomains = []string{
	"kubernetes.io", "k8s.io", "x-k8s.io", "berth.dev", "kai.scheduler", "karpenter.sh",
	"nvidia.com", "amd.com", "intel.com", "habana.ai", "huawei.com",
	"volcano.sh", "scheduling.run.ai", "ray.io", "kubeflow.org", "koordinator.sh", "hami.io", "aliyun.com", "aliyun.accelerator",
}

// isKnownKey reports whether a label key is kept. Keys in which users write words of their
// own after a domain of Kubernetes are not.
func isKnownKey(key string) bool {
	domain, name, ok := strings.Cut(key, "/")
	switch {
	case !ok:
		return key == nameField || key == provisionedTaint || key == feed.LabelShares
	case domain == "node-role.kubernetes.io":
		return name == "control-plane" || name == "master"
	case domain == "node-restriction.kubernetes.io":
		return false
	}
	return slices.ContainsFunc(knownDomains, func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
}

// knownValueKeys are the keys of labels with words that describe hardware or are read by
// Berth. Their values are kept.
var knownValueKeys = []string{
	corev1.LabelArchStable, corev1.LabelOSStable, "beta.kubernetes.io/arch", "beta.kubernetes.io/os",
	corev1.LabelInstanceTypeStable, corev1.LabelInstanceType, v1alpha1.LabelPreemptible, provisionedTaint,
	"kai.scheduler/instance-type", "karpenter.sh/capacity-type", convert.LabelAlibabaName, convert.LabelKoordinator, convert.LabelVendor,
	cluster.LabelProduct, cluster.LabelSharing, "nvidia.com/gpu.family", "nvidia.com/mig.strategy",
}

// isKnownValue reports whether a label value is kept whatever its key is: numbers, which the
// operators Gt and Lt compare, and true and false.
func isKnownValue(value string) bool {
	_, err := strconv.ParseInt(value, 10, 64)
	return err == nil || value == "true" || value == "false"
}

func isKnownResource(name string) bool {
	switch corev1.ResourceName(name) {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, corev1.ResourceStorage, corev1.ResourceEphemeralStorage:
		return true
	}
	domain, _, ok := strings.Cut(name, "/")
	return convert.IsDevice(name) || strings.HasPrefix(name, corev1.ResourceHugePagesPrefix) || ok && slices.Contains(knownDomains, domain)
}

// key returns the key of a label or a taint.
func (n *Names) key(key string) string {
	if share, is := strings.CutPrefix(key, feed.LabelShares+"/"); is {
		return feed.LabelShares + "/" + n.keys.of(share)
	}
	return n.keys.of(key)
}

// value returns the value of a label.
func (n *Names) value(key, value string) string {
	if alias, known := n.groupValue(key, value); known {
		return alias
	}
	switch {
	case key == nameField:
		return n.nodes.of(value)
	case key == corev1.LabelHostname:
		return n.hosts.of(value)
	case key == v1alpha1.LabelQueue:
		return n.queues.of(value)
	case key == v1alpha1.LabelCell:
		return n.cells.of(value)
	case key == corev1.LabelMetadataName:
		return n.namespaces.of(value)
	case key == cluster.LabelClique:
		return n.links.of(value)
	case key == v1alpha1.LabelPreemptible && value != "true" && value != "false":
		return unreadable
	case key == modelLabel:
		return n.modelValue(value)
	case slices.Contains(knownValueKeys, key), strings.HasPrefix(key, cluster.PartitionResource):
		return value
	}
	return n.values.of(value)
}

// modelValue returns the value of the label with a model: NAME or NAMESPACE_NAME.
func (n *Names) modelValue(value string) string {
	if namespace, name, ok := strings.Cut(value, "_"); ok {
		return n.namespaces.of(namespace) + "_" + n.workloads.of(name)
	}
	return n.workloads.of(value)
}

// resource returns the name of a resource, which may be followed by a colon and a product.
func (n *Names) resource(name string) string {
	name, product, ok := strings.Cut(name, ":")
	if name = n.resources.of(name); ok {
		name += ":" + product
	}
	return name
}

// file returns the name of a file of a model. The backend that serves a file depends on
// whether the name ends with .gguf.
func (n *Names) file(name string) string {
	alias := n.files.of(name)
	if alias != name && strings.EqualFold(name[max(0, len(name)-len(".gguf")):], ".gguf") {
		alias += ".gguf"
	}
	return alias
}

// task returns the name of a task of a job: the name of an entry and a number.
func (n *Names) task(name string) string {
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return name
	}
	return n.roles.of(name[:i]) + name[i:]
}
