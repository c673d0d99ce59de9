// Package manifest reads files into API objects, and makes a cluster.State of these.
//
// It reads the kinds of Berth, and nodes, pods and disruption budgets as kubectl prints
// them. Package strict decodes the files, and package convert turns each object into a
// cluster object. This package finds the files, checks references between objects, adds
// positions to what convert reports, and places the tasks that run. It also reads and
// writes snapshots.
//
// Every mistake is reported, with file, line, column, field and remedy. Nothing is
// decided here: whether a job fits a node is decided by plugins.
package manifest

import (
	"errors"
	"io"
	"os"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/internal/strict"
	"go.yaml.in/yaml/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Bundle contains the objects of one or more files. A program may add, change and remove
// objects before it calls State; errors about such objects have no position.
type Bundle struct {
	Nodes     []*v1alpha1.Node
	Queues    []*v1alpha1.Queue
	Jobs      []*v1alpha1.Job
	Models    []*v1alpha1.Model
	CoreNodes []*corev1.Node
	Pods      []*corev1.Pod
	Budgets   []*v1alpha1.DisruptionBudget
	// CoreBudgets are the budgets of Kubernetes.
	CoreBudgets []*policyv1.PodDisruptionBudget
	// PriorityClasses are the classes that pods may name.
	PriorityClasses []*schedulingv1.PriorityClass
	// Groups, BatchJobs and PodGroups describe which pods are placed together.
	Groups    []*unstructured.Unstructured // of the kinds of feed.GroupKinds
	BatchJobs []*batchv1.Job
	PodGroups []*schedulingv1alpha2.PodGroup
	// Workloads are other objects of which controllers make pods.
	Workloads []*unstructured.Unstructured
	// Namespaces may have annotations that are read.
	Namespaces []*corev1.Namespace
	// Claims, Slices and DeviceClasses are about devices that pods claim.
	Claims        []*resourcev1.ResourceClaim
	Slices        []*resourcev1.ResourceSlice
	DeviceClasses []*resourcev1.DeviceClass
	// Notes are what a user should know about how the input was read. Validate and State
	// set them.
	Notes []string

	plans          []*model.Result // of the models, in their order; State sets them
	snapshots      []*snapshotFile
	configurations []*Configuration
	scenarios      []*v1alpha1.Scenario
	sources        map[any]*source // by object
	skipped        skipped
	unknown        unknownFields
	unusable       map[string]string      // why pods of a cluster are not in State, by ID; State sets it
	expanding      bool                   // pods are made of workloads
	expanded       map[*corev1.Pod]string // the pods that were made of workloads, and the IDs of these
	expansions     map[string]*expansion  // by the IDs of the workloads
	unread         int                    // objects that could not be read, so that references to them cannot be checked
}

// Load reads files, directories (see Files) and, for "-", standard input, and validates
// the objects. A snapshot must be the only file, except for a configuration. The error is
// of type Errors and has every mistake.
func Load(paths []string) (*Bundle, error) {
	return LoadFrom(os.Stdin, paths)
}

// LoadFrom is like Load and reads standard input from stdin.
func LoadFrom(stdin io.Reader, paths []string) (*Bundle, error) {
	return (&Loader{Stdin: stdin}).Load(paths)
}

// Loader reads files as Load does.
type Loader struct {
	Stdin  io.Reader
	Expand bool // make the pods of workloads that have none
	// Progress, if not nil, is called with the name of each file before it is read, and then
	// from time to time with the number of its objects that were read. At last it is called
	// without a file and with the number of all objects, before they are checked together.
	Progress func(file string, objects int)
}

// Load is like the function Load.
func (l *Loader) Load(paths []string) (*Bundle, error) {
	names, errs := files(paths)
	out := &Bundle{}
	for _, p := range names {
		b, wrong := l.file(p)
		errs = append(errs, wrong...)
		out.Merge(b)
	}
	if l.Progress != nil {
		l.Progress("", out.count())
	}
	var unexpanded Errors
	if s := out.Scenario(); (l.Expand || s != nil && s.Expand) && out.unread == 0 && errors.As(expander{out}.all(), &unexpanded) {
		errs = append(errs, unexpanded...)
	}
	if out.Empty() && len(errs) == 0 {
		errs = append(errs, Error{File: strings.Join(paths, ", "), Message: emptyText(out)})
	} else if out.unread == 0 && !out.Empty() {
		var wrong Errors
		if errors.As(out.Validate(), &wrong) {
			errs = append(errs, wrong...)
		}
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return out, nil
}

// Documents calls visit with the root of each document of the paths, as it is written, and the
// name of its file. The paths are those of Load. The error is of type Errors.
func (l *Loader) Documents(paths []string, visit func(file string, root *yaml.Node)) error {
	names, errs := files(paths)
	for _, p := range names {
		l.show(p)
		name, data, err := read(p, l.Stdin)
		if err != nil {
			errs = append(errs, *err)
			continue
		}
		errs = append(errs, strict.Documents(name, data, func(root *yaml.Node) { visit(name, root) })...)
	}
	return errs.Err()
}

// show reports that the file is read. It returns a function that reports how many of its objects
// were read.
func (l *Loader) show(file string) func(objects int) {
	if l.Progress == nil {
		return func(int) {}
	}
	if file == "-" {
		file = stdinName
	}
	l.Progress(file, 0)
	return func(objects int) { l.Progress(file, objects) }
}

// file reads one file.
func (l *Loader) file(p string) (*Bundle, Errors) {
	progress := l.show(p)
	name, data, err := read(p, l.Stdin)
	if err != nil {
		return &Bundle{}, Errors{*err}
	}
	last := 0
	return parseEach(name, data, func(b *Bundle) {
		const step = 1000
		if n := b.count(); n >= last+step {
			last = n
			progress(n)
		}
	})
}

// Parse reads the documents of one file. It checks each object by itself; Validate and
// State check references between objects.
func Parse(name string, data []byte) (*Bundle, error) {
	b, errs := parse(name, data)
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return b, nil
}

func parse(name string, data []byte) (*Bundle, Errors) {
	return parseEach(name, data, func(*Bundle) {})
}

// parseEach is like parse, and calls each after every object.
func parseEach(name string, data []byte, each func(*Bundle)) (*Bundle, Errors) {
	if isSnapshot(data) {
		return parseSnapshot(name, data)
	}
	if o, ok := strict.ParseJSON(data); ok {
		return parseJSON(name, o, each)
	}
	if b, errs, ok := parseBlocks(name, data, each); ok {
		return b, errs
	}
	return parseTrees(name, data, each)
}

// parseTrees reads YAML, and JSON as YAML.
func parseTrees(name string, data []byte, each func(*Bundle)) (*Bundle, Errors) {
	b := &Bundle{}
	var errs Errors
	unread := strict.Documents(name, data, func(root *yaml.Node) {
		b.read(name, root, &errs)
		each(b)
	})
	b.unread += len(unread)
	return b, append(errs, unread...)
}

// Merge adds the objects of another bundle.
func (b *Bundle) Merge(o *Bundle) {
	for _, k := range kinds {
		k.merge(b, o)
	}
	b.snapshots = append(b.snapshots, o.snapshots...)
	b.unread += o.unread
	for kind, n := range o.skipped {
		b.skipped.add(kind, n)
	}
	b.unknown.merge(o.unknown)
	for object, src := range o.sources {
		b.remember(object, src)
	}
}

func (b *Bundle) remember(object any, src *source) {
	if b.sources == nil {
		b.sources = map[any]*source{}
	}
	b.sources[object] = src
}

// Configuration returns the configuration of the scheduler, nil if there is none. A
// configuration that was read beside a snapshot replaces that of the snapshot.
func (b *Bundle) Configuration() *Configuration {
	if len(b.configurations) > 0 {
		return b.configurations[0]
	}
	if f := b.snapshot(); f != nil {
		return f.configuration
	}
	return nil
}

// Scenario returns the scenario, nil if there is none.
func (b *Bundle) Scenario() *v1alpha1.Scenario {
	if len(b.scenarios) == 0 {
		return nil
	}
	return b.scenarios[0]
}

// Plans returns the plans of the models, as of the last call of State.
func (b *Bundle) Plans() []*model.Result { return b.plans }

// Where returns where an object was read, as "file:line". The object is one of the
// pointers in the bundle. It returns "" for an object that was not read from a file.
func (b *Bundle) Where(object any) string { return b.sources[object].fileLine() }

// Empty reports whether there are no objects, or only such that describe others.
func (b *Bundle) Empty() bool {
	n := len(b.snapshots)
	for _, k := range kinds {
		if !k.minor {
			n += k.count(b)
		}
	}
	return n == 0
}

func (b *Bundle) count() int {
	n := len(b.snapshots)
	for _, k := range kinds {
		n += k.count(b)
	}
	return n
}
