package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/nearest"
	"github.com/berth-project/berth/internal/phrase"
	"github.com/berth-project/berth/internal/strict"
	"go.yaml.in/yaml/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// API versions of the kinds of Kubernetes that are read.
const (
	coreVersion   = "v1"
	policyVersion = "policy/v1"
	classVersion  = "scheduling.k8s.io/v1"
	claimVersion  = "resource.k8s.io/v1"
)

// kind is a kind of object that is read. A bundle has a list of the objects of each kind.
type kind struct {
	version, name string
	group         string // of a kind that is read in every version of the group; version is then one of them
	minor         bool   // objects of the kind are nothing that could be scheduled, or scheduled on
	read          func(*Bundle, *yaml.Node, reporter)
	// readJSON is like read for an object in JSON. It reports false, and adds nothing, if the
	// object has to be read as a tree. It is nil for kinds that always are.
	readJSON func(*Bundle, *strict.JSON, reporter) bool
	count    func(*Bundle) int
	merge    func(b, o *Bundle)
	// visit calls its argument with the ID of each object. It is nil for kinds of which
	// there is one object at most, without an ID.
	visit func(*Bundle, func(id string, e objectEntry))
}

// kinds are the kinds that are read. Two kinds may share IDs; of two objects with one
// ID and no position, the one of the later kind is reported as the duplicate.
var kinds = slices.Concat(ownKinds, groupKinds())

// ownKinds are the kinds of which a bundle has a list each.
var ownKinds = []kind{
	kindOf(v1alpha1.APIVersion, v1alpha1.KindNode, func(b *Bundle) *[]*v1alpha1.Node { return &b.Nodes },
		func(o *v1alpha1.Node) string { return "node/" + o.Name },
		checked(convert.Node), nodePlaces),
	kindOf(v1alpha1.APIVersion, v1alpha1.KindQueue, func(b *Bundle) *[]*v1alpha1.Queue { return &b.Queues },
		func(o *v1alpha1.Queue) string { return "queue/" + o.Name },
		checkedAlone(convert.Queue), queuePlaces),
	kindOf(v1alpha1.APIVersion, v1alpha1.KindJob, func(b *Bundle) *[]*v1alpha1.Job { return &b.Jobs }, convert.JobID,
		checkedAlone(convert.Job), jobPlaces),
	kindOf(v1alpha1.APIVersion, v1alpha1.KindModel, func(b *Bundle) *[]*v1alpha1.Model { return &b.Models }, convert.ModelID,
		checkedAlone(convert.Model), modelPlaces),
	kindOf(v1alpha1.APIVersion, v1alpha1.KindDisruptionBudget, func(b *Bundle) *[]*v1alpha1.DisruptionBudget { return &b.Budgets }, convert.DisruptionBudgetID,
		checked(convert.DisruptionBudget), namePlace),
	configurationKind(),
	kindOf(v1alpha1.APIVersion, v1alpha1.KindScenario, func(b *Bundle) *[]*v1alpha1.Scenario { return &b.scenarios }, nil,
		convert.Scenario, func(*v1alpha1.Scenario) []path { return nil }),
	kindOf(coreVersion, "Node", func(b *Bundle) *[]*corev1.Node { return &b.CoreNodes },
		func(o *corev1.Node) string { return "node/" + o.Name },
		checked(convert.CoreNode), namePlace),
	kindOf(coreVersion, "Pod", func(b *Bundle) *[]*corev1.Pod { return &b.Pods }, convert.PodID,
		checkedPod, podPlaces),
	kindOf(policyVersion, "PodDisruptionBudget", func(b *Bundle) *[]*policyv1.PodDisruptionBudget { return &b.CoreBudgets }, convert.PodDisruptionBudgetID,
		checked(convert.PodDisruptionBudget), namePlace),
	kindOf(classVersion, "PriorityClass", func(b *Bundle) *[]*schedulingv1.PriorityClass { return &b.PriorityClasses }, convert.PriorityClassID,
		convert.PriorityClass, namePlace),
	minor(kindOf(coreVersion, "Namespace", func(b *Bundle) *[]*corev1.Namespace { return &b.Namespaces },
		func(o *corev1.Namespace) string { return "namespace/" + o.Name }, named[*corev1.Namespace]("namespace"), namePlace)),
	minor(kindOf("batch/v1", "Job", func(b *Bundle) *[]*batchv1.Job { return &b.BatchJobs }, groupID[*batchv1.Job]("batchjob"), named[*batchv1.Job]("Job"), namePlace)),
	minor(kindOf("scheduling.k8s.io/v1alpha2", "PodGroup", func(b *Bundle) *[]*schedulingv1alpha2.PodGroup { return &b.PodGroups },
		groupID[*schedulingv1alpha2.PodGroup]("podgroup"), named[*schedulingv1alpha2.PodGroup]("PodGroup"), namePlace)),
	minor(kindOf(claimVersion, "ResourceClaim", func(b *Bundle) *[]*resourcev1.ResourceClaim { return &b.Claims },
		groupID[*resourcev1.ResourceClaim]("resourceclaim"), named[*resourcev1.ResourceClaim]("ResourceClaim"), namePlace)),
	minor(kindOf(claimVersion, "ResourceSlice", func(b *Bundle) *[]*resourcev1.ResourceSlice { return &b.Slices },
		func(o *resourcev1.ResourceSlice) string { return "resourceslice/" + o.Name }, named[*resourcev1.ResourceSlice]("ResourceSlice"), namePlace)),
	minor(kindOf(claimVersion, "DeviceClass", func(b *Bundle) *[]*resourcev1.DeviceClass { return &b.DeviceClasses },
		func(o *resourcev1.DeviceClass) string { return "deviceclass/" + o.Name }, named[*resourcev1.DeviceClass]("DeviceClass"), namePlace)),
}

// minor returns the kind as a minor one.
func minor(k kind) kind {
	k.minor = true
	return k
}

// is reports whether objects of the version and kind are of this kind.
func (k *kind) is(version, name string) bool { return k.name == name && k.has(version) }

// has reports whether the kind is read in the version.
func (k *kind) has(version string) bool {
	group, v, _ := strings.Cut(version, "/")
	return k.version == version || k.group != "" && k.group == group && versionPattern.MatchString(v)
}

// named returns a function that checks the name and the namespace of an object.
func named[T metav1.Object](kind string) func(T) convert.Notes {
	return func(o T) convert.Notes { return convert.Named(o.GetNamespace(), o.GetName(), kind) }
}

// groupID returns a function that returns the ID of an object that has a namespace. The ID of an
// object that describes a gang is that of the gang.
func groupID[T metav1.Object](source string) func(T) string {
	return func(o T) string {
		return source + "/" + cmp.Or(o.GetNamespace(), corev1.NamespaceDefault) + "/" + o.GetName()
	}
}

// checked returns a function that converts an object and returns only the notes.
func checked[T, To any](conversion func(*T) (To, convert.Notes)) func(*T) convert.Notes {
	return func(o *T) convert.Notes {
		_, notes := conversion(o)
		return notes
	}
}

// checkedAlone is like checked, for a conversion that depends on other objects. These are
// not known while a file is read.
func checkedAlone[T, To any](conversion func(*T, *convert.Environment) (To, convert.Notes)) func(*T) convert.Notes {
	return func(o *T) convert.Notes {
		_, notes := conversion(o, &convert.Environment{})
		return notes
	}
}

// checkedPod returns the notes about a pod. Those about a pod of a cluster are left to State, because
// they are no errors in the input.
func checkedPod(o *corev1.Pod) convert.Notes {
	if ofCluster(o) {
		return nil
	}
	_, notes := convert.Pod(o, &convert.Environment{})
	return notes
}

// ofCluster reports whether the object was read from a cluster and not written by hand. A cluster may
// have objects that Berth cannot use, and that must not keep a dump from being read.
func ofCluster(o metav1.Object) bool { return o.GetUID() != "" }

// kindOf returns a kind of which list returns the objects in a bundle. Check returns what
// is wrong with an object, and places the fields that may be wrong because of other
// objects, which are checked after the document is dropped.
func kindOf[T any](version, name string, list func(*Bundle) *[]*T, id func(*T) string, check func(*T) convert.Notes, places func(*T) []path) kind {
	k := kind{
		version: version, name: name,
		read: func(b *Bundle, n *yaml.Node, r reporter) {
			var unknown []strict.UnknownField
			if o := decode[T](n, r, strict.Options{AllowUnknown: version != v1alpha1.APIVersion, Unknown: &unknown}); o != nil {
				r.report(check(o))
				*list(b) = append(*list(b), o)
				b.setSource(o, r, places(o)...)
				for _, f := range unknown {
					b.unknown.add(name, id(o), f)
				}
			}
		},
		readJSON: func(b *Bundle, text *strict.JSON, r reporter) bool {
			o := new(T)
			var unknown []strict.UnknownField
			if !text.Decode(o, strict.Options{AllowUnknown: version != v1alpha1.APIVersion, Unknown: &unknown}) {
				return false
			}
			r.report(check(o))
			*list(b) = append(*list(b), o)
			b.remember(o, r.src)
			for _, f := range unknown {
				b.unknown.add(name, id(o), f)
			}
			return true
		},
		count: func(b *Bundle) int { return len(*list(b)) },
		merge: func(b, o *Bundle) { *list(b) = append(*list(b), *list(o)...) },
	}
	if id != nil {
		k.visit = func(b *Bundle, each func(string, objectEntry)) {
			for i, o := range *list(b) {
				each(id(o), objectEntry{o, version, name, func(f *Bundle) error { return replace(b, *list(b), i, *list(f)) }})
			}
		}
	}
	return k
}

// configurationKind is the kind SchedulerConfiguration. A bundle has a Configuration
// instead of the object, since the arguments of plugins are decoded later.
func configurationKind() kind {
	k := kindOf(v1alpha1.APIVersion, v1alpha1.KindSchedulerConfiguration, func(b *Bundle) *[]*Configuration { return &b.configurations }, nil, nil, nil)
	k.readJSON = nil
	k.read = func(b *Bundle, n *yaml.Node, r reporter) {
		if o := decode[v1alpha1.SchedulerConfiguration](n, r, strict.Options{}); o != nil {
			b.configurations = append(b.configurations, configuration(o, r))
			r.src.dropTree()
		}
	}
	return k
}

// kindNames returns the kinds of an API version that are read. Of Kubernetes, lists are
// read as well.
func kindNames(version string) []string {
	var out, lists []string
	for _, k := range kinds {
		if k.has(version) {
			out = append(out, k.name)
			lists = append(lists, k.name+"List")
		}
	}
	switch version {
	case v1alpha1.APIVersion:
		return out
	case coreVersion:
		out = append(out, "List")
	}
	return append(out, lists...)
}

const (
	whatIsRead = "berth reads Node, Queue, Job, Model, DisruptionBudget, SchedulerConfiguration and Scenario of " + v1alpha1.APIVersion +
		", and of Kubernetes and other programs, alone or in lists: Node, Pod, PodDisruptionBudget, PriorityClass, Namespace, Job, PodGroup, JobSet, LeaderWorkerSet, RayCluster, MPIJob, PyTorchJob, TFJob, XGBoostJob, PaddleJob, JAXJob, Deployment, StatefulSet, ResourceClaim, ResourceSlice and DeviceClass"
	dumpCommand = "kubectl get nodes,pods,pdb -A -o yaml"
)

// read adds the object, or the objects of a list, to the bundle.
func (b *Bundle) read(file string, n *yaml.Node, errs *Errors) {
	b.readAs(file, n, "", "", errs)
}

// readAs reads an object. Version and kind are those of the list that contains it, or "". They
// are used if the object has none, as in what kubectl get --raw prints.
func (b *Bundle) readAs(file string, n *yaml.Node, version, kind string, errs *Errors) {
	objects, wrong := b.count(), len(*errs)
	defer func() {
		if b.count() == objects && len(*errs) > wrong {
			b.unread++
		}
	}()
	n = strict.Resolve(n)
	src := &source{file: file, start: strict.Position{Line: n.Line, Column: n.Column}, root: n}
	r := reporter{src, errs}
	if n.Kind != yaml.MappingNode {
		r.errorf(nil, "want an object with apiVersion and kind, have %s%s", strict.Describe(n), listRemedy(n))
		return
	}
	if v := strict.Text(n, "apiVersion"); v != "" {
		version = v
	}
	if k := strict.Text(n, "kind"); k != "" {
		kind = k
	}
	switch of := kindNames(version); {
	case isForeign(version, kind):
		b.skipped.add(kind, 1)
	case len(of) == 0:
		r.unknownVersion(version, kind)
	case version == v1alpha1.APIVersion && kind == v1alpha1.KindSnapshot:
		r.errorf(nil, "a snapshot is one JSON document in a file of its own, and begins with apiVersion, kind and version, as berth simulate --snapshot-out writes it")
	case version == coreVersion && slices.Contains(kindNames(policyVersion), kind):
		r.unknownVersion(version, kind)
	case !slices.Contains(of, kind):
		r.unknownKind(kind, of)
	default:
		b.readKind(version, kind, n, r)
	}
}

// isForeign reports whether the object is of a kind of Kubernetes, or of another program, that is
// not read. Such objects are skipped, so that a dump of everything can be read. What may be a
// typing error in a kind that is read is not foreign.
func isForeign(version, kind string) bool {
	group, v, grouped := strings.Cut(version, "/")
	if !grouped {
		group, v = "", version
	}
	if kind == "" || !versionPattern.MatchString(v) || slices.Contains(kindNames(version), kind) {
		return false
	}
	switch own, _, _ := strings.Cut(v1alpha1.APIVersion, "/"); {
	case group == "policy" && slices.Contains(kindNames(policyVersion), kind), group == "scheduling.k8s.io" && slices.Contains(kindNames(classVersion), kind):
		return false // of another version
	case grouped:
		_, similar := nearest.Find(group, []string{own})
		return !similar || group != own && !slices.Contains(kindNames(v1alpha1.APIVersion), kind)
	}
	_, typo := nearest.Find(kind, slices.Concat(kindNames(coreVersion), kindNames(policyVersion)))
	return version == coreVersion && !typo
}

// versionPattern matches versions of APIs of Kubernetes: v1, v1beta1.
var versionPattern = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)

// skipped counts the objects of each kind that is not read.
type skipped map[string]int

func (s *skipped) add(kind string, n int) {
	if *s == nil {
		*s = skipped{}
	}
	(*s)[kind] += n
}

// text returns how many objects of each kind were skipped: "12 Service, 3 Deployment". It is ""
// if there are none. Kinds of which most were skipped are first.
func (s skipped) text() string {
	const most = 10
	names := slices.Collect(maps.Keys(s))
	slices.SortFunc(names, func(x, y string) int {
		return cmp.Or(cmp.Compare(s[y], s[x]), strings.Compare(x, y))
	})
	var out []string
	for i, name := range names {
		if i == most {
			out = append(out, english.Count(len(names)-most, "other kind"))
			break
		}
		out = append(out, fmt.Sprintf("%d %s", s[name], phrase.Clip(name)))
	}
	return strings.Join(out, ", ")
}

// readKind reads an object of a known kind, or a list of objects.
func (b *Bundle) readKind(version, name string, n *yaml.Node, r reporter) {
	for _, k := range kinds {
		if k.is(version, name) {
			k.read(b, n, r)
			return
		}
	}
	item := strings.TrimSuffix(name, "List")
	if item == "" { // a List: each item has a kind of its own
		version = ""
	}
	b.readItems(n, version, item, r)
}

func listRemedy(n *yaml.Node) string {
	if n.Kind == yaml.SequenceNode {
		return "; put the objects under items of {apiVersion: v1, kind: List}, or separate them with ---"
	}
	return ""
}

func (r reporter) unknownVersion(version, kind string) {
	ownKinds, coreKinds, policyKinds := kindNames(v1alpha1.APIVersion), kindNames(coreVersion), kindNames(policyVersion)
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
	r.errorf(path{"apiVersion"}, "unknown apiVersion %s; %s", phrase.Quote(version), remedy)
}

func (r reporter) unknownKind(kind string, candidates []string) {
	if kind == "" {
		r.errorf(path{"kind"}, "kind is missing; %s", whatIsRead)
		return
	}
	if n, ok := nearest.Find(kind, candidates); ok {
		r.errorf(path{"kind"}, "kind %s is not read; did you mean %s? %s", phrase.Quote(kind), phrase.Quote(n), whatIsRead)
		return
	}
	r.errorf(path{"kind"}, "kind %s is not read; %s. To dump what berth reads: %s", phrase.Quote(kind), whatIsRead, dumpCommand)
}

func (b *Bundle) readItems(n *yaml.Node, version, kind string, r reporter) {
	items := strict.Entry(n, "items")
	if items == nil || strict.IsNull(strict.Resolve(items)) {
		return
	}
	if items = strict.Resolve(items); items.Kind != yaml.SequenceNode {
		r.errorf(path{"items"}, "want a list, have %s", strict.Describe(items))
		return
	}
	for _, item := range items.Content {
		b.readAs(r.src.file, item, version, kind, r.errs)
	}
}

// decode returns nil if there is any error. An object that was decoded in part is not
// checked, because that would report the same mistakes again.
func decode[T any](n *yaml.Node, r reporter, options strict.Options) *T {
	out := new(T)
	options.File = r.src.file
	if errs := strict.Decode(n, out, options); len(errs) > 0 {
		*r.errs = append(*r.errs, errs...)
		return nil
	}
	return out
}

// setSource records where an object is written. It is called after the object was checked, and
// drops the document.
func (b *Bundle) setSource(object any, r reporter, places ...path) {
	r.src.dropTree(places...)
	b.remember(object, r.src)
}
