package migration

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/field"
	"github.com/berth-project/berth/internal/phrase"
	"github.com/berth-project/berth/internal/strict"
	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type path = field.Path

// object is an object of another scheduler, and which of its fields were taken.
type object struct {
	file      string
	root      *yaml.Node
	kind      string // in lower case, such as workspace
	meta      metav1.ObjectMeta
	migration *migration
	taken     map[string]bool // by path: the field is converted
	touched   map[string]bool // by path: a field below it is converted
	unknown   int             // notes about unknown fields
	noted     map[string]bool // flavors with a note
}

// id returns KIND/NAME or KIND/NAMESPACE/NAME.
func (o *object) id() string {
	name := phrase.Clip(o.meta.Name)
	if o.meta.Namespace != "" {
		name = phrase.Clip(o.meta.Namespace) + "/" + name
	}
	return o.kind + "/" + name
}

// where returns the ID and the place of the object.
func (o *object) where() string {
	return fmt.Sprintf("%s (%s:%d)", o.id(), o.file, strict.Resolve(o.root).Line)
}

func (o *object) errorf(at path, format string, args ...any) {
	n := strict.Locate(o.root, at)
	o.migration.errs = append(o.migration.errs, strict.Error{File: o.file, Line: n.Line, Column: n.Column, Path: at.String(), Message: fmt.Sprintf(format, args...)})
}

// notef notes something about a field of the object.
func (o *object) notef(at path, format string, args ...any) {
	text := o.id() + ": "
	if len(at) > 0 {
		text += at.String() + ": "
	}
	o.migration.notes = append(o.migration.notes, text+fmt.Sprintf(format, args...))
}

// node returns the value of a field, nil if it is missing or null.
func (o *object) node(at path) *yaml.Node {
	n := strict.Resolve(o.root)
	for _, step := range at {
		var next *yaml.Node
		switch s := step.(type) {
		case string:
			if n.Kind == yaml.MappingNode {
				next = strict.Entry(n, s)
			}
		case int:
			if n.Kind == yaml.SequenceNode && s < len(n.Content) {
				next = n.Content[s]
			}
		}
		if next == nil {
			return nil
		}
		n = strict.Resolve(next)
	}
	if strict.IsNull(n) {
		return nil
	}
	return n
}

// mark records that the field is converted.
func (o *object) mark(at path) {
	if o.taken == nil {
		o.taken = map[string]bool{}
	}
	o.taken[at.String()] = true
	o.touch(at[:max(0, len(at)-1)])
}

// touch records that fields below the path are converted one by one.
func (o *object) touch(at path) {
	if o.touched == nil {
		o.touched = map[string]bool{}
	}
	for i := range len(at) + 1 {
		o.touched[at[:i].String()] = true
	}
}

// ignore marks fields at the top of the object.
func (o *object) ignore(names ...string) {
	for _, name := range names {
		o.mark(path{name})
	}
}

// take decodes a field and marks it as converted. It returns false if the field is missing or
// null, or has another type, which is an error.
func take[T any](o *object, at ...any) (T, bool) {
	var out T
	n := o.node(at)
	if n == nil {
		o.touch(at[:len(at)-1])
		return out, false
	}
	o.mark(at)
	errs := strict.Decode(n, &out, strict.Options{File: o.file, Path: at})
	o.migration.errs = append(o.migration.errs, errs...)
	return out, len(errs) == 0
}

// text takes a field that is text. It returns "" if the field is missing.
func (o *object) text(at ...any) string {
	s, _ := take[string](o, at...)
	return s
}

// entries returns how many entries a list has. A field that is no list is an error.
func (o *object) entries(at ...any) int {
	n := o.node(at)
	if n == nil {
		return 0
	}
	o.touch(at)
	if n.Kind != yaml.SequenceNode {
		o.mark(at)
		o.errorf(at, "want a list, have %s", strict.Describe(n))
		return 0
	}
	return len(n.Content)
}

// rule is about a field that is not converted.
type rule struct {
	// says what to do about the field. A field with an empty text is ignored: the server writes it,
	// or it has no effect.
	says string
	// unless are values that have no effect, for example defaults.
	unless []string
}

// rules are the rules of a kind by the path of the field, in which an entry of a list is [].
type rules map[string]rule

// metadataRules are the rules of all objects of Kubernetes. Labels are kept.
var metadataRules = rules{
	"metadata.uid": {}, "metadata.resourceVersion": {}, "metadata.generation": {}, "metadata.creationTimestamp": {},
	"metadata.managedFields": {}, "metadata.selfLink": {}, "metadata.finalizers": {}, "metadata.ownerReferences": {},
	"metadata.deletionTimestamp": {}, "metadata.deletionGracePeriodSeconds": {}, "metadata.generateName": {},
	`metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]`: {},
	"metadata.annotations": {}, "status": {},
}

// takeMeta takes the name, the namespace and the labels.
func (o *object) takeMeta() {
	o.meta.Name = o.text("metadata", "name")
	o.meta.Namespace = o.text("metadata", "namespace")
	o.meta.Labels, _ = take[map[string]string](o, "metadata", "labels")
	if o.meta.Name == "" {
		o.errorf(path{"metadata"}, "the object needs a name")
	}
}

// annotations notes annotations that change what the scheduler of the object does: those with
// one of the prefixes.
func (o *object) annotations(prefixes ...string) {
	n := o.node(path{"metadata", "annotations"})
	if n == nil || n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i].Value
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) }) {
			o.unknownField(path{"metadata", "annotations", key}, "the annotation has no counterpart")
		}
	}
}

// rest notes all fields that were not taken.
func (o *object) rest(all ...rules) {
	w := walker{object: o, rules: rules{}, above: map[string]bool{}}
	for _, list := range all {
		for at, r := range list {
			w.rules[at] = r
			for i, c := range at {
				if c == '.' || c == '[' {
					w.above[at[:i]] = true
				}
			}
		}
	}
	w.visit(o.root, nil, "")
	if more := o.unknown - mostUnknown; more > 0 {
		o.notef(nil, "%s of the object have no counterpart either", english.Count(more, "other field"))
	}
}

// mostUnknown is how many unknown fields of an object are named.
const mostUnknown = 20

func (o *object) unknownField(at path, says string) {
	if o.unknown++; o.unknown <= mostUnknown {
		o.notef(at, "%s", says)
	}
}

// walker visits the fields of an object that were not taken.
type walker struct {
	object *object
	rules  rules
	above  map[string]bool // paths with a rule for a field below them
}

func (w *walker) visit(n *yaml.Node, at path, pattern string) {
	n = strict.Resolve(n)
	text := at.String()
	if w.object.taken[text] || isEmpty(n) {
		return
	}
	if r, known := w.rules[pattern]; known {
		if r.says != "" && !(n.Kind == yaml.ScalarNode && slices.Contains(r.unless, n.Value)) {
			w.object.notef(at, "%s", r.says)
		}
		return
	}
	if len(at) > 0 && !w.object.touched[text] && !w.above[pattern] || n.Kind == yaml.ScalarNode {
		w.object.unknownField(at, "berth migrate does not know this field, and leaves it out")
		return
	}
	if n.Kind == yaml.SequenceNode {
		for i, c := range n.Content {
			w.visit(c, at.Add(i), pattern+"[]")
		}
		return
	}
	w.visitKeys(n, at, pattern)
}

func (w *walker) visitKeys(n *yaml.Node, at path, pattern string) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := strict.Resolve(n.Content[i])
		switch {
		case key.Kind != yaml.ScalarNode:
			w.object.errorf(at, "want a field name, have %s", strict.Describe(key))
			continue
		case key.ShortTag() == "!!merge":
			w.visitMerged(strict.Resolve(n.Content[i+1]), at, pattern)
			continue
		case seen[key.Value]:
			w.object.errorf(at, "duplicate key %s", phrase.Quote(key.Value))
			continue
		}
		seen[key.Value] = true
		step := path{key.Value}.String()
		if pattern != "" && !strings.HasPrefix(step, "[") {
			step = "." + step
		}
		w.visit(n.Content[i+1], at.Add(key.Value), pattern+step)
	}
}

// visitMerged visits the fields of the objects that a key << merges.
func (w *walker) visitMerged(n *yaml.Node, at path, pattern string) {
	list := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		list = n.Content
	}
	for _, c := range list {
		if c = strict.Resolve(c); c.Kind == yaml.MappingNode {
			w.visitKeys(c, at, pattern)
		}
	}
}

// isEmpty reports whether the value is null, or has no entries or characters.
func isEmpty(n *yaml.Node) bool {
	switch n.Kind {
	case yaml.MappingNode, yaml.SequenceNode:
		return len(n.Content) == 0
	}
	return strict.IsNull(n) || n.Kind == yaml.ScalarNode && n.Value == ""
}
