package cluster

import (
	"encoding/binary"
	"sort"
)

// Shape is what a task requests, and all that shape-form hooks may read of a task. It
// has no name, job or label. Tasks with equal requests and equal Keys share one Shape
// (State.Intern), and the engine remembers the results of hooks for each shape. An interned
// Shape must not be changed.
type Shape struct {
	Resources   Resources    `json:"resources,omitempty"`   // requests of the node's resources; cpu and memory are always present
	LeftOut     Resources    `json:"leftOut,omitempty"`     // what scores count in addition to Resources; see LeftOut
	Need        Need         `json:"need,omitzero"`         // requests of devices
	Selector    []Label      `json:"selector,omitempty"`    // labels that the node must have, sorted
	Required    []Term       `json:"required,omitempty"`    // at least one of them must match the node; an empty list matches every node
	Preferred   []Preference `json:"preferred,omitempty"`   // terms that make a node better or worse
	Tolerations []Toleration `json:"tolerations,omitempty"` // taints of nodes that it tolerates
	Isolation   Isolation    `json:"isolation,omitzero"`    // the classes of isolation that it requests
	Cell        string       `json:"cell,omitempty"`        // the cell that the node must be in; "" means any
	Preemptible bool         `json:"preemptible,omitempty"` // whether the job is preemptible
	Profile     string       `json:"profile,omitempty"`     // the name of the profile that decides about the task; "", or a name that no profile has, means the first profile
	Key         string       `json:"key,omitempty"`         // what only a plugin reads of the task, as an opaque text; shapes with different Keys are different shapes
	// The following fields are only set for models; see ServesModel.
	Strategy Strategy `json:"strategy,omitempty"` // how replicas are distributed over nodes; "" if the task does not serve a model
	Backend  string   `json:"backend,omitempty"`  // the name of the program that serves the model; Need.Types says which devices it supports
	Files    Files    `json:"files,omitzero"`     // the files that the model is loaded from

	key     string
	devices deviceRequest
}

// The amounts that scores count for a container that requests no cpu or no memory, as in
// Kubernetes. Such a container still uses some of both, and a node with many of them
// should not score as an empty one.
const (
	DefaultCPU    Milli = 100
	DefaultMemory Bytes = 200 << 20
)

// LeftOut returns what scores count for one container in addition to its requests: the
// default amounts of cpu and memory, for each of them that it does not request. Only
// scores use it. Whether a task fits, and what its queue uses, depends on its requests.
func LeftOut(requests Resources) Resources {
	var out Resources
	for _, a := range [...]Amount{{CPU, int64(DefaultCPU)}, {Memory, int64(DefaultMemory)}} {
		if requests.Of(a.Name) == 0 {
			out = append(out, a)
		}
	}
	return out
}

// Strategy is how the replicas of a model are distributed over nodes.
type Strategy string

// The strategies.
const (
	Binpack Strategy = "Binpack" // fill nodes and devices one after the other
	Spread  Strategy = "Spread"  // use as many nodes as possible
)

// Files are the files that a model is loaded from.
type Files struct {
	Main  string `json:"main,omitempty"`  // key in Node.Artifacts of the model's file; "" if there is none
	Draft string `json:"draft,omitempty"` // the same for the file of the draft model
	// Path is the key in Node.Artifacts of a local path, which must be on the node if the
	// task selects devices by ID; "" means that the files can be fetched.
	Path string `json:"path,omitempty"`
}

// ServesModel reports whether the shape belongs to a task that serves a model.
func (s *Shape) ServesModel() bool { return s.Strategy != "" }

// Label is a label of a node: a key and a value.
type Label struct {
	Key   string `json:"key,omitempty"`
	Value string `json:"value,omitempty"`
}

// SortLabels returns the labels of a map, sorted by key, as Shape.Selector requires.
func SortLabels(m map[string]string) []Label {
	out := make([]Label, 0, len(m))
	for k, v := range m {
		out = append(out, Label{k, v})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Key < out[j].Key })
	return out
}

// Cores returns how many whole cores a task of the shape holds if its class of CPU isolation
// is WholeCore or StrictIsolated: its cpu request, rounded up, and at least one.
func (s *Shape) Cores() int64 {
	return max(1, (s.Resources.Of(CPU)+int64(Whole)-1)/int64(Whole))
}

// GPUClass returns the class of GPU isolation that the node must support. A request for
// less than a whole device that names no class has the class Shared.
func (s *Shape) GPUClass() GPUClass {
	if s.Isolation.GPU == "" && !s.Need.None() && !s.holdsWhole() {
		return GPUShared
	}
	return s.Isolation.GPU
}

// keyWriter encodes a shape as a string. Two shapes have the same encoding if and only
// if they are equal.
type keyWriter []byte

func (w *keyWriter) str(s string) {
	*w = binary.AppendUvarint(*w, uint64(len(s)))
	*w = append(*w, s...)
}
func (w *keyWriter) num(n int64) { *w = binary.AppendVarint(*w, n) }
func (w *keyWriter) flag(b bool) {
	if b {
		*w = append(*w, 1)
	} else {
		*w = append(*w, 0)
	}
}
func (w *keyWriter) strs(list []string) {
	w.num(int64(len(list)))
	for _, s := range list {
		w.str(s)
	}
}
func (w *keyWriter) amounts(list Resources) {
	w.num(int64(len(list)))
	for _, a := range list {
		w.str(a.Name)
		w.num(a.Value)
	}
}
func (w *keyWriter) terms(list []Term) {
	w.num(int64(len(list)))
	for _, t := range list {
		w.num(int64(len(t)))
		for _, r := range t {
			w.str(r.Key)
			w.str(string(r.Operator))
			w.strs(r.Values)
		}
	}
}

// encoding returns the encoding of the shape.
func (s *Shape) encoding() string { return string(s.appendKey(nil)) }

// appendKey appends the encoding of the shape to key.
func (s *Shape) appendKey(key []byte) []byte {
	w := keyWriter(key)
	w.amounts(s.Resources)
	w.amounts(s.LeftOut)
	s.Need.encode(&w)
	w.num(int64(len(s.Selector)))
	for _, l := range s.Selector {
		w.str(l.Key)
		w.str(l.Value)
	}
	w.terms(s.Required)
	w.num(int64(len(s.Preferred)))
	for _, p := range s.Preferred {
		w.num(int64(p.Weight))
		w.terms([]Term{p.Term})
	}
	w.num(int64(len(s.Tolerations)))
	for _, t := range s.Tolerations {
		w.str(t.Key)
		w.str(t.Operator)
		w.str(t.Value)
		w.str(string(t.Effect))
	}
	w.str(string(s.Isolation.CPU))
	w.str(string(s.Isolation.GPU))
	w.str(s.Isolation.Session)
	w.str(s.Cell)
	w.flag(s.Preemptible)
	w.str(string(s.Strategy))
	w.str(s.Backend)
	w.str(s.Files.Main)
	w.str(s.Files.Draft)
	w.str(s.Files.Path)
	w.str(s.Key)
	w.str(s.Profile)
	return w
}
