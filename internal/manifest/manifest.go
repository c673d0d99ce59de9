// Package manifest turns files into API objects and these into cluster.State.
//
// It is strict: what it cannot read or believe is an error with file, line,
// column, field and remedy, and all of them come at once. It reads Berth's own
// kinds and what kubectl prints of a live cluster: nodes, pods and disruption
// budgets. It decides nothing: whether a job fits, or a node's labels make
// sense, is for plugins.
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
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
)

// Bundle is the objects of one or more files. Objects may be added, changed and
// removed in code before State is called; those know no line.
type Bundle struct {
	Nodes     []*v1alpha1.Node
	Queues    []*v1alpha1.Queue
	Jobs      []*v1alpha1.Job
	Models    []*v1alpha1.Model
	CoreNodes []*corev1.Node
	Pods      []*corev1.Pod
	Budgets   []*v1alpha1.DisruptionBudget
	// CoreBudgets are those of Kubernetes.
	CoreBudgets []*policyv1.PodDisruptionBudget
	// Notes are what a person should know about how the input was read. They
	// are those of the last call of Validate or State.
	Notes []string

	plans          []*model.Plan // of the models, in their order, as of the last call of State
	snapshots      []*snapshotFile
	configurations []*Configuration
	scenarios      []*v1alpha1.Scenario
	sources        map[any]*source // by object
	lost           int             // objects that could not be read; what names them cannot be checked
}

// Load reads files, directories (all .yaml, .yml and .json below them) and, for
// "-", standard input; a snapshot stands alone. The error is Errors: everything wrong, not just the first.
func Load(paths []string) (*Bundle, error) {
	return LoadFrom(os.Stdin, paths)
}

// LoadFrom is Load with another standard input.
func LoadFrom(stdin io.Reader, paths []string) (*Bundle, error) {
	names, errs := files(paths)
	out := &Bundle{}
	for _, p := range names {
		name, data, err := read(p, stdin)
		if err != nil {
			errs = append(errs, *err)
			continue
		}
		b, wrong := parse(name, data)
		errs = append(errs, wrong...)
		out.Merge(b)
	}
	if out.Empty() && len(errs) == 0 {
		errs = append(errs, Error{File: strings.Join(paths, ", "), Message: emptyRemedy})
	} else if out.lost == 0 && !out.Empty() {
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

// Parse reads the documents of one file. It checks each object for itself;
// Validate and State check them against each other.
func Parse(name string, data []byte) (*Bundle, error) {
	b, errs := parse(name, data)
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return b, nil
}

func parse(name string, data []byte) (*Bundle, Errors) {
	if isSnapshot(data) {
		return parseSnapshot(name, data)
	}
	b := &Bundle{}
	var errs Errors
	unread := strict.Documents(name, data, func(root *yaml.Node) { b.read(name, root, &errs) })
	b.lost += len(unread)
	return b, append(errs, unread...)
}

// Merge adds the objects of another bundle.
func (b *Bundle) Merge(o *Bundle) {
	for _, k := range kinds {
		k.merge(b, o)
	}
	b.snapshots = append(b.snapshots, o.snapshots...)
	b.lost += o.lost
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

// Configuration is the scheduler's configuration, nil if there is none. One that was
// read beside a snapshot counts instead of the snapshot's.
func (b *Bundle) Configuration() *Configuration {
	if len(b.configurations) > 0 {
		return b.configurations[0]
	}
	if f := b.snapshot(); f != nil {
		return f.configuration
	}
	return nil
}

// Scenario is what should come of the objects, nil if nothing is said.
func (b *Bundle) Scenario() *v1alpha1.Scenario {
	if len(b.scenarios) == 0 {
		return nil
	}
	return b.scenarios[0]
}

// Plans are what became of the models when State was last called.
func (b *Bundle) Plans() []*model.Plan { return b.plans }

// Where is the file and line that an object, one of the bundle's pointers, was
// read from, as "file:line"; "" for objects made in code.
func (b *Bundle) Where(object any) string { return b.sources[object].where() }

// Empty reports whether there are no objects.
func (b *Bundle) Empty() bool { return b.count() == 0 }

func (b *Bundle) count() int {
	n := len(b.snapshots)
	for _, k := range kinds {
		n += k.count(b)
	}
	return n
}
