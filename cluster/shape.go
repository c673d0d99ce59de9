package cluster

import (
	"encoding/binary"
	"sort"
)

// Shape is everything about a task that shape-form hooks may look at: no name,
// no job, no labels. Tasks that look alike share one Shape (State.Intern), and
// the engine remembers its answers per shape. Shapes never change.
type Shape struct {
	Resources   Resources    `json:"resources,omitempty"`   // cpu and memory always present
	LeftOut     Resources    `json:"leftOut,omitempty"`     // what scores count beside Resources; see LeftOut
	Need        Need         `json:"need,omitzero"`         // what it asks of devices
	Selector    []Label      `json:"selector,omitempty"`    // labels a node must have, sorted
	Required    []Term       `json:"required,omitempty"`    // any of these must match the node; none: all do
	Preferred   []Preference `json:"preferred,omitempty"`   // terms that make a node better or worse
	Tolerations []Toleration `json:"tolerations,omitempty"` // taints of nodes that it tolerates
	Isolation   Isolation    `json:"isolation,omitzero"`    // the classes of isolation that it asks for
	Cell        string       `json:"cell,omitempty"`        // "" is any cell
	Preemptible bool         `json:"preemptible,omitempty"` // whether its job is
	// What only models ask for; see Served.
	Strategy Strategy `json:"strategy,omitempty"` // how replicas are laid out over nodes; "" for what is no model
	Backend  string   `json:"backend,omitempty"`  // what serves it, to be named; Need.Types says what it runs on
	Files    Files    `json:"files,omitzero"`     // what a model is loaded from

	key     string
	devices deviceRequest
}

// What scores count for a container that requests no cpu or no memory, as in
// Kubernetes: a container uses some of both, and a node with many of them is not empty.
const (
	DefaultCPU    Milli = 100
	DefaultMemory Bytes = 200 << 20
)

// LeftOut is what scores count for one container beside its requests: the defaults
// of cpu and memory that it does not request. Scores alone count it: whether a task
// fits, and what its queue uses, goes by its requests.
func LeftOut(requests Resources) Resources {
	var out Resources
	for _, a := range [...]Amount{{CPU, int64(DefaultCPU)}, {Memory, int64(DefaultMemory)}} {
		if requests.Of(a.Name) == 0 {
			out = append(out, a)
		}
	}
	return out
}

// Strategy is how the replicas of a model are laid out over nodes.
type Strategy string

// The strategies.
const (
	Binpack Strategy = "Binpack" // fill nodes and devices
	Spread  Strategy = "Spread"  // as many nodes as possible
)

// Files are what a model is loaded from.
type Files struct {
	Main  string `json:"main,omitempty"` // names in Node.Artifacts, "" where there is none
	Draft string `json:"draft,omitempty"`
	// Path must be on the node itself where devices are selected; "": it can be fetched.
	Path string `json:"path,omitempty"`
}

// Served reports whether the shape is of a model.
func (s *Shape) Served() bool { return s.Strategy != "" }

// Label is one key and its value.
type Label struct {
	Key   string `json:"key,omitempty"`
	Value string `json:"value,omitempty"`
}

// SortLabels turns a map into the sorted list a Shape holds.
func SortLabels(m map[string]string) []Label {
	out := make([]Label, 0, len(m))
	for k, v := range m {
		out = append(out, Label{k, v})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Key < out[j].Key })
	return out
}

// Cores is how many whole cores an isolated shape takes: at least one.
func (s *Shape) Cores() int64 {
	return max(1, (s.Resources.Of(CPU)+int64(Whole)-1)/int64(Whole))
}

// GPUClass is the class to check: a part of a device is sharing, said or not.
func (s *Shape) GPUClass() GPUClass {
	if s.Isolation.GPU == "" && !s.Need.None() && !s.counted() {
		return GPUShared
	}
	return s.Isolation.GPU
}

// keyWriter spells a shape out so that equal shapes, and only these, spell the same.
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

func (s *Shape) spell() string { return string(s.appendKey(nil)) }

// appendKey appends the spelling of the shape.
func (s *Shape) appendKey(key []byte) []byte {
	w := keyWriter(key)
	w.amounts(s.Resources)
	w.amounts(s.LeftOut)
	s.Need.spell(&w)
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
	return w
}
