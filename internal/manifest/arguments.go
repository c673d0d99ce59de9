package manifest

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/strict"
	"go.yaml.in/yaml/v3"
)

// Arguments are the arguments of one plugin in a configuration. They are kept as a tree
// until the plugin decodes them into a type of its own.
type Arguments struct {
	node *yaml.Node
	file string
	path path
}

// Decode reads the arguments into a struct. A field that the struct does not have is an
// error. Without arguments the struct keeps its values. The plugin validates them.
func (a Arguments) Decode(into any) error {
	return strict.Decode(a.node, into, strict.Options{File: a.file, Path: a.path}).Err()
}

// Empty reports whether no arguments are written.
func (a Arguments) Empty() bool { return a.node == nil || strict.IsNull(strict.Resolve(a.node)) }

// Equal reports whether the other arguments have the same values.
func (a Arguments) Equal(other any) bool {
	b, ok := other.(Arguments)
	if !ok || a.Empty() || b.Empty() {
		return ok && a.Empty() == b.Empty()
	}
	var x, y any
	return a.node.Decode(&x) == nil && b.node.Decode(&y) == nil && reflect.DeepEqual(x, y)
}

// ParseArguments reads a file, or the text of a flag, that contains only arguments.
func ParseArguments(name string, data []byte) (Arguments, error) {
	var out Arguments
	var docs []*yaml.Node
	errs := strict.Documents(name, data, func(root *yaml.Node) { docs = append(docs, root) })
	if err := errs.Err(); err != nil {
		return out, err
	}
	if len(docs) > 1 {
		return out, Errors{{File: name, Line: docs[1].Line, Message: "want one document"}}
	}
	for _, d := range docs {
		out = Arguments{node: d, file: name}
	}
	return out, nil
}

// Configuration is a SchedulerConfiguration with arguments that can be decoded.
type Configuration struct {
	ReplaceDefaults bool
	Packing         string         // the word that selects the policy; "": the default
	Plugins         []PluginEntry  // in the order in which they are written
	Profiles        []ProfileEntry // in the order in which they are written; none if there is one profile without a name
	Where           string         // file:line

	src     *source
	written *v1alpha1.SchedulerConfiguration
}

// ProfileEntry is one of several profiles.
type ProfileEntry struct {
	Name    string
	Packing string        // "": that of the configuration
	Plugins []PluginEntry // the changes to the plugins of the configuration
}

// PluginEntry is the entry of one plugin.
type PluginEntry struct {
	Name      string
	Weight    *int // nil: as in the default profile
	Before    string
	After     string
	Position  string // at most one of Before, After and Position is set
	Disabled  bool
	Arguments Arguments
	Where     string // file:line
}

// configuration checks a configuration and finds the arguments of its plugins.
func configuration(c *v1alpha1.SchedulerConfiguration, r reporter) *Configuration {
	out := &Configuration{ReplaceDefaults: c.ReplaceDefaults, Packing: c.Packing, Where: r.src.fileLine(), src: r.src, written: c}
	r.report(convert.Configuration(c))
	out.Plugins = entries(c.Plugins, path{"plugins"}, r)
	for i, p := range c.Profiles {
		at := path{"profiles", i}
		out.Profiles = append(out.Profiles, ProfileEntry{Name: p.SchedulerName, Packing: p.Packing, Plugins: entries(p.Plugins, at.Add("plugins"), r)})
	}
	return out
}

// entries returns the entries of a list of plugins.
func entries(list []v1alpha1.PluginConfig, in path, r reporter) []PluginEntry {
	var out []PluginEntry
	for i, p := range list {
		at := in.Add(i)
		e := PluginEntry{Name: p.Name, Weight: p.Weight, Before: p.Before, After: p.After, Position: p.Position, Disabled: p.Disabled}
		e.Where = fmt.Sprintf("%s:%d", r.src.file, r.src.position(at).Line)
		if n := strict.Resolve(strict.Locate(r.src.root, at)); n.Kind == yaml.MappingNode {
			if args := strict.Entry(n, "arguments"); args != nil {
				e.Arguments = Arguments{args, r.src.file, at.Add("arguments")}
			}
		}
		if a := e.Arguments.node; a != nil && !strict.IsNull(strict.Resolve(a)) && strict.Resolve(a).Kind != yaml.MappingNode {
			r.errorf(at.Add("arguments"), "want an object, have %s", strict.Describe(strict.Resolve(a)))
		}
		out = append(out, e)
	}
	return out
}

// names returns the names of the profiles; nil if there are none. The configuration may be nil.
func (c *Configuration) names() []string {
	var out []string
	if c != nil {
		for _, p := range c.Profiles {
			out = append(out, p.Name)
		}
	}
	return out
}

// Written returns the configuration as it is written.
func (c *Configuration) Written() *v1alpha1.SchedulerConfiguration { return c.written }

// Entry returns the entry of a plugin, nil if there is none.
func (c *Configuration) Entry(plugin string) *PluginEntry {
	i := slices.IndexFunc(c.Plugins, func(e PluginEntry) bool { return e.Name == plugin })
	if i < 0 {
		return nil
	}
	return &c.Plugins[i]
}
