// Package anonymize makes a copy of a cluster without the words of its owner. The copy has
// other names, labels and times, and the engine decides alike about it.
//
// Objects are not edited but built anew from the fields that Berth reads, so that a field
// that is not listed here, such as a command, a variable or an annotation, is never copied.
// Decisions depend on names only where these are equal or are compared. Equal names
// therefore become equal names, and sorted names stay sorted (see table).
package anonymize

import (
	"fmt"
	"io"
	"time"

	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/internal/manifest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cluster is a cluster with other names.
type Cluster struct {
	Objects []any // API objects, with their kinds
	Names   *Names
	Now     int64    // the time of the decisions, in nanoseconds since 1970
	Notes   []string // what is not in the copy
}

// Of returns a copy of the objects of the bundle with other names. Now is the time of the
// decisions, in nanoseconds since 1970. It is an error if the bundle contains what cannot
// be copied.
func Of(b *manifest.Bundle, now int64) (*Cluster, error) {
	if b.IsSnapshot() {
		return nil, fmt.Errorf("a snapshot holds State and not manifests, and only manifests can be anonymized; name the manifests that it was made from")
	}
	if err := checkModels(b); err != nil {
		return nil, err
	}
	configs, err := reduceConfigs(b)
	if err != nil {
		return nil, err
	}
	n := newNames(b)
	n.configs = configs
	n.now, n.earliest, n.latest = now, now, now
	n.objects(b) // this call only collects the names
	n.seal()
	n.sealTimes()
	c := &Cluster{Names: n, Objects: n.objects(b)}
	if now != 0 {
		c.Now = now + n.shift
	}
	c.Notes = n.notes(b)
	return c, nil
}

// Write writes the objects as documents of one YAML file.
func (c *Cluster) Write(w io.Writer) error { return manifest.WriteObjects(w, c.Objects) }

// objects returns the objects of the bundle with the names in n.
func (n *Names) objects(b *manifest.Bundle) []any {
	own, core := berthObjects{n}, coreObjects{n}
	var out []any
	if c := b.Configuration(); c != nil {
		out = append(out, n.configuration(c.Written()))
	}
	for _, o := range b.Queues {
		out = append(out, own.queue(o))
	}
	first := true // State does not have the creation times of nodes, but Bundle.Now reads them
	for _, o := range b.Nodes {
		out = append(out, own.node(o, first))
		first = false
	}
	for _, o := range b.CoreNodes {
		out = append(out, core.coreNode(o, first))
		first = false
	}
	for _, o := range b.Jobs {
		out = append(out, own.job(o))
	}
	for _, o := range b.Models {
		out = append(out, own.model(o))
	}
	out = append(out, core.groups(b)...)
	for _, o := range b.Pods {
		if !left(o) {
			out = append(out, core.pod(convert.WithPriority(o, b.PriorityClasses)))
		}
	}
	for _, o := range b.Budgets {
		out = append(out, own.budget(o))
	}
	for _, o := range b.CoreBudgets {
		out = append(out, core.coreBudget(o))
	}
	return out
}

// left reports whether the pod has no effect: it has ended and counts for no gang.
func left(o *corev1.Pod) bool { return convert.Ended(o) && !feed.Grouped(o) }

// notes returns what a user should know about the copy.
func (n *Names) notes(b *manifest.Bundle) []string {
	var out []string
	if b.Scenario() != nil {
		out = append(out, "the scenario is not part of the output, because its expectations name what is replaced")
	}
	if c := b.Configuration(); c != nil {
		for _, name := range foreignArguments(c.Written()) {
			out = append(out, fmt.Sprintf("the arguments of plugin %s are not part of the output, because it is not a plugin of Berth and its arguments may contain names", name))
		}
	}
	if len(b.Claims)+len(b.Slices) > 0 {
		out = append(out, "ResourceClaims and ResourceSlices are not part of the output; devices that pods hold by claims are missing in it")
	}
	if n.latest > n.now || n.now != 0 && len(b.Nodes)+len(b.CoreNodes) == 0 {
		out = append(out, fmt.Sprintf("the output has no object with the time of the decisions; use it with --now %s", time.Unix(0, n.now+n.shift).UTC().Format(time.RFC3339)))
	}
	return out
}

// meta returns the name, namespace and labels of an object.
func (n *Names) meta(name, namespace string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: n.namespaces.of(namespace), Labels: n.labels(labels)}
}

// nodeMeta returns the metadata of a node. The first one gets the time of the decisions.
func (n *Names) nodeMeta(name string, labels map[string]string, first bool) metav1.ObjectMeta {
	out := n.meta(n.nodes.of(name), "", labels)
	if first && n.now != 0 {
		out.CreationTimestamp = n.time(metav1.Time{Time: time.Unix(0, n.now)})
	}
	return out
}

func (n *Names) labels(labels map[string]string) map[string]string {
	if labels == nil {
		return nil
	}
	out := make(map[string]string, len(labels))
	for k, v := range labels {
		out[n.key(k)] = n.value(k, v)
	}
	return out
}

// valuesOf returns the values that a condition compares a label with.
func (n *Names) valuesOf(key string, values []string) []string {
	return each(values, func(v string) string { return n.value(key, v) })
}

func (n *Names) amounts(list corev1.ResourceList) corev1.ResourceList {
	return amountsOf(n, list)
}

// amountsOf returns a map from resources with the names of these replaced.
func amountsOf[K ~string, V any](n *Names, list map[K]V) map[K]V {
	if list == nil {
		return nil
	}
	out := make(map[K]V, len(list))
	for k, v := range list {
		out[K(n.resource(string(k)))] = v
	}
	return out
}

// each returns the results of f, nil for a nil list.
func each[T, R any](list []T, f func(T) R) []R {
	if list == nil {
		return nil
	}
	out := make([]R, len(list))
	for i, x := range list {
		out[i] = f(x)
	}
	return out
}

// optional returns the result of f, nil for nil.
func optional[T, R any](x *T, f func(*T) *R) *R {
	if x == nil {
		return nil
	}
	return f(x)
}
