// Package migration converts objects of other schedulers to objects of Berth: Workspaces and
// InferenceSets of KAITO, models of GPUStack, and queues of KAI-Scheduler, Volcano and Kueue.
//
// Each source has a file with a function that takes the fields which it converts from an object,
// and a table of rules about the fields that have no counterpart. A field that is neither taken
// nor in the table is reported as unknown, so that no field is dropped silently.
//
// The package decides nothing about placement. Every object is parsed again by package manifest
// before it is written. An object that Berth would refuse is written as a comment with the reason.
package migration

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/phrase"
	"github.com/berth-project/berth/internal/strict"
	"go.yaml.in/yaml/v3"
)

// Result is what was made of the input.
type Result struct {
	// Documents are the queues, namespaces and models, in this order.
	Documents []*Document
	// Notes say what has no counterpart, and what to do about it.
	Notes []string
}

// Document is an object of Berth, or a Namespace of Kubernetes.
type Document struct {
	Object any
	// Problem is why Berth would refuse the object. The object is then written as a comment. It is
	// empty for an object that can be used.
	Problem string
	id      string // such as model/chat
	from    *object
}

// whatIsRead completes an error about input without an object that can be converted.
const whatIsRead = "berth migrate converts Workspace and InferenceSet of kaito.sh, models of GPUStack, " +
	"Queue of scheduling.run.ai and of scheduling.volcano.sh, and ClusterQueue, Cohort, LocalQueue and ResourceFlavor of kueue.x-k8s.io"

// Convert reads the paths with the loader and converts their objects. The error is of type
// manifest.Errors: a file cannot be read, an object has a value of the wrong type, or there is
// no object that can be converted.
func Convert(l *manifest.Loader, paths []string) (*Result, error) {
	m := &migration{others: map[string]int{}}
	err := l.Documents(paths, func(file string, root *yaml.Node) {
		m.read(&object{file: file, root: root, migration: m}, "", "")
	})
	if errs, failed := err.(manifest.Errors); failed {
		m.errs = append(m.errs, errs...)
	} else if err != nil {
		return nil, err
	}
	if m.converted == 0 && len(m.errs) == 0 {
		m.errs = append(m.errs, strict.Error{File: strings.Join(paths, ", "), Message: m.nothingText()})
	}
	if err := m.errs.Err(); err != nil {
		return nil, err
	}
	m.finish()
	if err := m.errs.Err(); err != nil {
		return nil, err
	}
	return &Result{Documents: m.documents(), Notes: m.notes}, nil
}

// migration holds what was read so far.
type migration struct {
	queues     []*queue
	namespaces []*Document
	models     []*Document
	kueue      kueue
	others     map[string]int // objects that are not converted, by apiVersion and kind
	converted  int
	notes      []string
	errs       manifest.Errors
}

// source converts the objects of a kind.
type source struct {
	group, kind string
	convert     func(*migration, *object)
}

var sources = []source{
	{"kaito.sh", "Workspace", workspace},
	{"kaito.sh", "InferenceSet", inferenceSet},
	{"scheduling.run.ai", "Queue", kaiQueue},
	{"scheduling.volcano.sh", "Queue", volcanoQueue},
	{"kueue.x-k8s.io", "ClusterQueue", clusterQueue},
	{"kueue.x-k8s.io", "Cohort", cohort},
	{"kueue.x-k8s.io", "LocalQueue", localQueue},
	{"kueue.x-k8s.io", "ResourceFlavor", resourceFlavor},
}

// read converts an object, or the objects of a list. Version and kind are those of items of a list
// that do not have their own.
func (m *migration) read(o *object, version, kind string) {
	root := strict.Resolve(o.root)
	if root.Kind == yaml.SequenceNode {
		m.readAll(o.file, root, "", "")
		return
	}
	if root.Kind != yaml.MappingNode {
		o.errorf(nil, "want an object, have %s; %s", strict.Describe(root), whatIsRead)
		return
	}
	version = cmp.Or(strict.Text(root, "apiVersion"), version)
	kind = cmp.Or(strict.Text(root, "kind"), kind)
	if items := list(root, kind); items != nil {
		item := strings.TrimSuffix(kind, "List")
		if item == "" {
			version = ""
		}
		m.readAll(o.file, items, version, item)
		return
	}
	if version == "" && kind == "" {
		m.readUntyped(o)
		return
	}
	group, _, _ := strings.Cut(version, "/")
	for _, s := range sources {
		if s.group == group && s.kind == kind {
			m.converted++
			o.kind = strings.ToLower(kind)
			o.ignore("apiVersion", "kind")
			s.convert(m, o)
			return
		}
	}
	m.others[strings.TrimSpace(version+" "+kind)]++
}

// readAll converts the entries of a list.
func (m *migration) readAll(file string, items *yaml.Node, version, kind string) {
	for _, item := range items.Content {
		if !strict.IsNull(strict.Resolve(item)) {
			m.read(&object{file: file, root: item, migration: m}, version, kind)
		}
	}
}

// readUntyped converts an object without a kind, which only GPUStack has.
func (m *migration) readUntyped(o *object) {
	if !isGPUStack(o.root) {
		o.errorf(nil, "kind is missing, and this is no model of GPUStack, which has name and source; %s", whatIsRead)
		return
	}
	m.converted++
	gpustackModel(m, o)
}

// list returns the items of a list of objects, or nil. GPUStack writes lists without a kind.
func list(root *yaml.Node, kind string) *yaml.Node {
	items := strict.Entry(root, "items")
	if items == nil || kind != "" && !strings.HasSuffix(kind, "List") {
		return nil
	}
	if items = strict.Resolve(items); items.Kind != yaml.SequenceNode {
		return nil
	}
	return items
}

// nothingText says that no object could be converted.
func (m *migration) nothingText() string {
	if len(m.others) == 0 {
		return "there is nothing to convert: no object was found; " + whatIsRead
	}
	return "none of the objects can be converted: " + m.othersText() + "; " + whatIsRead
}

// othersText lists a few of the kinds that are not converted.
func (m *migration) othersText() string {
	const most = 8
	names := slices.Sorted(maps.Keys(m.others))
	var out []string
	for _, name := range names[:min(len(names), most)] {
		out = append(out, fmt.Sprintf("%d %s", m.others[name], phrase.Clip(name)))
	}
	if more := len(names) - most; more > 0 {
		out = append(out, english.Count(more, "other kind"))
	}
	return strings.Join(out, ", ")
}

// finish converts what needs all objects, and checks the documents.
func (m *migration) finish() {
	m.finishKueue()
	m.finishQueues()
	for _, d := range slices.Concat(m.namespaces, m.models) {
		d.check()
	}
	m.checkDuplicates()
	for _, d := range m.documents() {
		if d.Problem != "" {
			m.notes = append(m.notes, fmt.Sprintf("%s is written as a comment, because %s", d.id, d.Problem))
		}
	}
	m.noteOthers()
}

// documents returns all documents in the order in which they are written.
func (m *migration) documents() []*Document {
	var out []*Document
	for _, q := range m.queues {
		out = append(out, q.document)
	}
	return slices.Concat(out, m.namespaces, m.models)
}

// checkDuplicates sets the problem of documents with an ID that an earlier document has.
func (m *migration) checkDuplicates() {
	first := map[string]*Document{}
	for _, d := range m.documents() {
		if d.Problem != "" {
			continue
		}
		if other := first[d.id]; other != nil {
			d.Problem = fmt.Sprintf("%s is already made of %s; rename one of them", d.id, other.from.where())
			continue
		}
		first[d.id] = d
	}
}

// kindAdvice says what to do with objects of kinds that are not converted, by group and kind.
var kindAdvice = map[string]string{
	"batch.volcano.sh Job":                 "berth simulate --expand reads it as it is; on Kubernetes, write an Indexed Job, a JobSet or a LeaderWorkerSet instead",
	"scheduling.volcano.sh PodGroup":       "Berth reads it as it is",
	"scheduling.run.ai PodGroup":           "Berth reads it as it is",
	"kai.scheduler Topology":               "it has no counterpart: a level of a topology is the key of a node label",
	"kueue.x-k8s.io Topology":              "it has no counterpart: a level of a topology is the key of a node label",
	"topology.volcano.sh HyperNode":        "it has no counterpart: a level of a topology is the key of a node label",
	"kueue.x-k8s.io WorkloadPriorityClass": "write a PriorityClass instead",
	"kueue.x-k8s.io Workload":              "it has no counterpart: Berth decides about the pods themselves",
	"kueue.x-k8s.io AdmissionCheck":        "it has no counterpart",
	"kaito.sh RAGEngine":                   "it has no counterpart: run it as a Deployment",
	"kaito.sh ModelMirror":                 "it has no counterpart: use server.cache of the Model",
	"kaito.sh MultiRoleInference":          "it has no counterpart: write a Model for each role",
}

// noteOthers adds a note for each kind that is not converted.
func (m *migration) noteOthers() {
	for _, name := range slices.Sorted(maps.Keys(m.others)) {
		version, kind, _ := strings.Cut(name, " ")
		group, _, _ := strings.Cut(version, "/")
		advice := cmp.Or(kindAdvice[group+" "+kind], "berth migrate does not convert this kind")
		m.notes = append(m.notes, fmt.Sprintf("%d %s of %s: %s", m.others[name], phrase.Clip(kind), phrase.Clip(version), advice))
	}
}
