package migration

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/phrase"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const sourceKueue = "Kueue"

// kueue holds the objects of Kueue until all of them are known: a quota needs the flavors, and the
// bounds of a cohort follow from the quotas of its queues.
type kueue struct {
	flavors       map[string]map[string]string // the node labels of each flavor
	clusterQueues []*kueueQueue
	cohorts       []*kueueQueue
	localQueues   []*kueueLocal
}

// kueueQueue is a ClusterQueue or a Cohort.
type kueueQueue struct {
	object  *object
	parent  string // the name of the cohort above it
	amounts []kueueAmount
	weight  *resource.Quantity
	queue   *queue // set by finishKueue
	below   []*kueueQueue
}

// kueueAmount is the quota of one resource of one flavor.
type kueueAmount struct {
	resource, flavor string
	nominal          resource.Quantity
	borrowing        *resource.Quantity // nil: without a bound
	at               path
}

// kueueLocal is a LocalQueue.
type kueueLocal struct {
	object *object
	queue  string // the name of its ClusterQueue
}

var kueueRules = rules{
	"spec.namespaceSelector":         {says: "Berth does not restrict which namespaces use a queue; a quota of Kubernetes or an admission policy can restrict the pods of a namespace"},
	"spec.queueingStrategy":          {says: "it has no counterpart: a job that cannot be placed does not block the jobs behind it", unless: []string{"BestEffortFIFO"}},
	"spec.flavorFungibility":         {says: "it has no counterpart: node selectors of the pods decide which nodes are used"},
	"spec.admissionChecks":           {says: "it has no counterpart: autoscalers see the pending pods"},
	"spec.admissionChecksStrategy":   {says: "it has no counterpart: autoscalers see the pending pods"},
	"spec.stopPolicy":                {says: "it has no counterpart: to stop the queue, write limits of 0", unless: []string{"None"}},
	"spec.admissionScope":            {says: "it has no counterpart: to count past use, set halfLife of the plugin FairShare"},
	"spec.concurrentAdmissionPolicy": {says: "it has no counterpart"},
	"spec.preemption.reclaimWithinCohort": {says: "Berth reclaims preemptible pods of queues above their fair share, whatever their priority; pods that must stay must not be preemptible",
		unless: []string{"Any"}},
	"spec.preemption.withinClusterQueue":                       {says: "Berth preempts preemptible pods of a lower priority; pods that must stay must not be preemptible", unless: []string{"LowerPriority"}},
	"spec.preemption.borrowWithinCohort":                       {says: "it has no counterpart"},
	"spec.resourceGroups[].coveredResources":                   {},
	"spec.resourceGroups[].flavors[].resources[].lendingLimit": {says: "it has no counterpart: what a queue does not use is always lent"},
	"spec.nodeTaints":                                          {says: "taint the nodes themselves; the pods need a toleration"},
	"spec.tolerations":                                         {says: "set the tolerations on the pods"},
	"spec.topologyName":                                        {says: "it has no counterpart: a level of a topology is the key of a node label"},
}

var localQueueRules = rules{
	"spec.fairSharing": {says: "a LocalQueue has no weight in Berth: write a queue for each namespace"},
	"spec.stopPolicy":  {says: "it has no counterpart", unless: []string{"None"}},
}

// resourceFlavor takes a ResourceFlavor.
func resourceFlavor(m *migration, o *object) {
	o.takeMeta()
	if m.kueue.flavors == nil {
		m.kueue.flavors = map[string]map[string]string{}
	}
	m.kueue.flavors[o.meta.Name], _ = take[map[string]string](o, "spec", "nodeLabels")
	o.rest(metadataRules, kueueRules)
}

// clusterQueue takes a ClusterQueue.
func clusterQueue(m *migration, o *object) {
	o.takeMeta()
	q := &kueueQueue{object: o, parent: o.text("spec", "cohortName")}
	if old := o.text("spec", "cohort"); q.parent == "" { // the name in v1beta1
		q.parent = old
	}
	q.take()
	m.kueue.clusterQueues = append(m.kueue.clusterQueues, q)
}

// cohort takes a Cohort.
func cohort(m *migration, o *object) {
	o.takeMeta()
	q := &kueueQueue{object: o, parent: o.text("spec", "parentName")}
	if old := o.text("spec", "parent"); q.parent == "" { // the name in v1alpha1
		q.parent = old
	}
	q.take()
	m.kueue.cohorts = append(m.kueue.cohorts, q)
}

// take takes the fields that both kinds have.
func (q *kueueQueue) take() {
	o := q.object
	if w, set := take[resource.Quantity](o, "spec", "fairSharing", "weight"); set {
		q.weight = &w
	}
	groups := path{"spec", "resourceGroups"}
	for i := range o.entries(groups...) {
		flavors := groups.Add(i, "flavors")
		for k := range o.entries(flavors...) {
			q.takeFlavor(flavors.Add(k))
		}
	}
	o.annotations("kueue.x-k8s.io/")
	o.rest(metadataRules, kueueRules)
}

func (q *kueueQueue) takeFlavor(at path) {
	o := q.object
	flavor := o.text(at.Add("name")...)
	list := at.Add("resources")
	for i := range o.entries(list...) {
		a := kueueAmount{flavor: flavor, at: list.Add(i), resource: o.text(list.Add(i, "name")...)}
		a.nominal, _ = take[resource.Quantity](o, list.Add(i, "nominalQuota")...)
		if b, set := take[resource.Quantity](o, list.Add(i, "borrowingLimit")...); set {
			a.borrowing = &b
		}
		if a.resource == "" {
			o.errorf(a.at, "the name of the resource is missing")
		}
		q.amounts = append(q.amounts, a)
	}
}

// localQueue takes a LocalQueue.
func localQueue(m *migration, o *object) {
	o.takeMeta()
	m.kueue.localQueues = append(m.kueue.localQueues, &kueueLocal{o, o.text("spec", "clusterQueue")})
	o.rest(metadataRules, localQueueRules)
}

// finishKueue makes queues of ClusterQueues and Cohorts, and annotates the namespaces of LocalQueues.
func (m *migration) finishKueue() {
	k := &m.kueue
	names := m.cohortNames()
	byName := map[string]*kueueQueue{}
	for _, c := range k.cohorts {
		if byName[c.object.meta.Name] == nil {
			byName[c.object.meta.Name] = c
		}
	}
	for _, q := range slices.Concat(k.clusterQueues, k.cohorts) {
		if q.parent != "" && byName[q.parent] == nil { // Kueue makes a cohort of any name that is used
			from := *q.object
			from.kind, from.meta = "cohort", metav1.ObjectMeta{Name: q.parent}
			byName[q.parent] = &kueueQueue{object: &from}
			k.cohorts = append(k.cohorts, byName[q.parent])
		}
	}
	for _, q := range slices.Concat(k.cohorts, k.clusterQueues) {
		if above := byName[q.parent]; q.parent != "" && above != nil {
			above.below = append(above.below, q)
		}
	}
	for _, c := range k.cohorts {
		c.queue = m.addQueue(sourceKueue, c.object)
		c.queue.Name = names[c.object.meta.Name]
		c.queue.document.id = "queue/" + phrase.Clip(c.queue.Name)
	}
	for _, q := range k.clusterQueues {
		q.queue = m.addQueue(sourceKueue, q.object)
		m.setClusterQueue(q)
	}
	for _, q := range slices.Concat(k.cohorts, k.clusterQueues) {
		q.queue.Spec.Parent, q.queue.weight = names[q.parent], q.weight
	}
	for _, c := range k.cohorts {
		m.setCohort(c)
	}
	m.annotateNamespaces()
}

// cohortNames returns the names of the queues that cohorts become. ClusterQueues and cohorts may have
// equal names, and queues may not.
func (m *migration) cohortNames() map[string]string {
	taken := map[string]bool{}
	for _, q := range m.kueue.clusterQueues {
		taken[q.object.meta.Name] = true
	}
	out := map[string]string{}
	add := func(name string, o *object) {
		if _, done := out[name]; done || name == "" {
			return
		}
		if out[name] = name; taken[name] {
			out[name] = name + "-cohort"
			o.notef(nil, "the cohort %s becomes the queue %s, because a ClusterQueue has the same name", phrase.Quote(name), phrase.Quote(out[name]))
		}
	}
	for _, q := range slices.Concat(m.kueue.cohorts, m.kueue.clusterQueues) {
		if q.object.kind == "cohort" {
			add(q.object.meta.Name, q.object)
		}
		add(q.parent, q.object)
	}
	return out
}

// setClusterQueue sets the quotas and the limits. A queue in no cohort cannot borrow, so that its
// quotas are its limits.
func (m *migration) setClusterQueue(q *kueueQueue) {
	spec := &q.queue.Spec
	unbounded := map[corev1.ResourceName]bool{}
	for _, a := range q.amounts {
		for _, name := range m.quotaNames(q.object, a) {
			add(spec.Quota, name, a.nominal)
			most := a.nominal.DeepCopy()
			if a.borrowing != nil {
				most.Add(*a.borrowing)
			} else if q.parent != "" {
				unbounded[name] = true
			}
			sum := spec.Limits[name]
			sum.Add(most)
			spec.Limits[name] = sum
		}
	}
	for name := range unbounded {
		delete(spec.Limits, name)
	}
}

func add(list map[corev1.ResourceName]v1alpha1.QuotaAmount, name corev1.ResourceName, amount resource.Quantity) {
	sum := list[name]
	sum.Add(amount)
	list[name] = sum
}

// setCohort sets the bounds of a cohort. Its queues together use at most the sum of their quotas
// and of its own, and what it borrows from the cohort above it.
func (m *migration) setCohort(c *kueueQueue) {
	own := map[corev1.ResourceName]v1alpha1.QuotaAmount{}
	borrowing := map[corev1.ResourceName]*resource.Quantity{}
	for _, a := range c.amounts {
		for _, name := range m.quotaNames(c.object, a) {
			add(own, name, a.nominal)
			borrowing[name] = a.borrowing
		}
	}
	all := map[corev1.ResourceName]v1alpha1.QuotaAmount{}
	m.sumBelow(c, all, 0)
	for _, name := range sortedNames(all) {
		if amount, set := own[name]; set && !amount.IsZero() {
			c.queue.Spec.Quota[name] = all[name]
		}
		most := all[name].DeepCopy()
		switch b, named := borrowing[name]; {
		case c.parent == "":
		case named && b != nil:
			most.Add(*b)
		default:
			continue
		}
		c.queue.Spec.Limits[name] = most
	}
}

// sumBelow adds the quotas of the cohort and of all queues below it. A product is left out if quotas
// of the same resource name no product, because these include it.
func (m *migration) sumBelow(c *kueueQueue, all map[corev1.ResourceName]v1alpha1.QuotaAmount, depth int) {
	general := map[string]bool{}
	m.sum(c, all, general, depth)
	for name := range all {
		if r, _, product := strings.Cut(string(name), ":"); product && general[r] {
			delete(all, name)
		}
	}
}

func (m *migration) sum(c *kueueQueue, all map[corev1.ResourceName]v1alpha1.QuotaAmount, general map[string]bool, depth int) {
	if depth > maxDepth { // a cycle, which is reported later
		return
	}
	for _, a := range c.amounts {
		names := m.namesOf(a)
		for _, name := range names {
			add(all, name, a.nominal)
		}
		general[a.resource] = general[a.resource] || len(names) == 1
	}
	for _, q := range c.below {
		m.sum(q, all, general, depth+1)
	}
}

// productLabels are the node labels that name the product of devices.
var productLabels = map[string]string{"nvidia.com/gpu": "nvidia.com/gpu.product", "amd.com/gpu": "amd.com/gpu.product-name"}

// namesOf returns the names of a quota: the resource and, if the flavor selects a product of it, the
// resource with the product.
func (m *migration) namesOf(a kueueAmount) []corev1.ResourceName {
	out := []corev1.ResourceName{corev1.ResourceName(a.resource)}
	if label := productLabels[a.resource]; label != "" {
		if product := m.kueue.flavors[a.flavor][label]; product != "" {
			out = append(out, corev1.ResourceName(a.resource+":"+product))
		}
	}
	return out
}

// quotaNames is like namesOf, and notes what the names do not say about the flavor.
func (m *migration) quotaNames(o *object, a kueueAmount) []corev1.ResourceName {
	if o.noted == nil {
		o.noted = map[string]bool{}
	}
	names := m.namesOf(a)
	labels, there := m.kueue.flavors[a.flavor]
	note := func(format string, args ...any) {
		if !o.noted[a.flavor] { // once for all resources of the flavor
			o.noted[a.flavor] = true
			o.notef(a.at[:len(a.at)-2], format, args...)
		}
	}
	switch {
	case !there:
		note("the ResourceFlavor %s is not in the input; the quota counts for all nodes", phrase.Quote(a.flavor))
	case len(labels) == 0:
	case len(names) == 1:
		note("the quota of the flavor %s counts for all nodes; to keep pods on its nodes, give them the node selector %s", phrase.Quote(a.flavor), labelText(labels))
	case len(labels) > 1:
		note("the quota of the flavor %s counts for all nodes with the product; to keep pods on its nodes, give them the node selector %s", phrase.Quote(a.flavor), labelText(labels))
	}
	return names
}

// labelText returns a few labels as {key: value}.
func labelText(labels map[string]string) string {
	const most = 5
	var out []string
	for key, value := range labels {
		out = append(out, phrase.Clip(key)+": "+phrase.Clip(value))
	}
	slices.Sort(out)
	if len(out) > most {
		out = append(out[:most], "…")
	}
	return "{" + strings.Join(out, ", ") + "}"
}

// annotateNamespaces names the queue of each namespace. Of several LocalQueues of a namespace, Kueue uses
// the one named default for pods that name none.
func (m *migration) annotateNamespaces() {
	const annotation = "berth.dev/default-queue"
	of := map[string][]*kueueLocal{}
	var namespaces []string
	for _, l := range m.kueue.localQueues {
		n := l.object.meta.Namespace
		if n == "" {
			n = corev1.NamespaceDefault
		}
		if len(of[n]) == 0 {
			namespaces = append(namespaces, n)
		}
		of[n] = append(of[n], l)
	}
	for _, n := range namespaces {
		list := of[n]
		i := max(0, slices.IndexFunc(list, func(l *kueueLocal) bool { return l.object.meta.Name == "default" }))
		chosen := list[i]
		for k, l := range list {
			if k != i {
				l.object.notef(nil, "give the pods of this LocalQueue the label %s: %s", v1alpha1.LabelQueue, phrase.Clip(l.queue))
			}
		}
		if len(list) > 1 && chosen.object.meta.Name != "default" {
			chosen.object.notef(nil, "give the pods of this LocalQueue the label %s: %s; the namespace has several, and none is named default", v1alpha1.LabelQueue, phrase.Clip(chosen.queue))
			continue
		}
		if chosen.queue == "" {
			chosen.object.notef(path{"spec", "clusterQueue"}, "it is missing; give the pods the label %s", v1alpha1.LabelQueue)
			continue
		}
		chosen.object.notef(nil, "the namespace names the queue %s for all pods that name none; the label kueue.x-k8s.io/queue-name is not read", phrase.Quote(chosen.queue))
		m.namespaces = append(m.namespaces, &Document{id: "namespace/" + phrase.Clip(n), from: chosen.object, Object: &corev1.Namespace{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: n, Annotations: map[string]string{annotation: chosen.queue}},
		}})
	}
	m.checkLocalQueues()
}

// checkLocalQueues notes LocalQueues of ClusterQueues that are not in the input.
func (m *migration) checkLocalQueues() {
	there := map[string]bool{}
	for _, q := range m.kueue.clusterQueues {
		there[q.object.meta.Name] = true
	}
	for _, l := range m.kueue.localQueues {
		if l.queue != "" && !there[l.queue] {
			l.object.notef(path{"spec", "clusterQueue"}, "%s", fmt.Sprintf("the ClusterQueue %s is not in the input", phrase.Quote(l.queue)))
		}
	}
}
