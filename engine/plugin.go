package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/berth-project/berth/internal/nearest"
)

// Plugin is one policy. It registers its hooks when a session opens; it may keep
// state from session to session, but a session's decisions may depend only on
// what went into that session.
type Plugin interface {
	Name() string
	OnSessionOpen(*Session)
}

// Closer is a plugin that is told when a session closes.
type Closer interface {
	OnSessionClose(*Session)
}

// Dependent is a plugin that works only beside others. A profile that has the plugin
// and lacks one of them is not built.
type Dependent interface {
	Requires() []string // the names of the others
}

// Arguments is a plugin's configuration as the user wrote it. Decode is strict:
// an unknown field or a value of the wrong kind is an error that says where.
type Arguments interface {
	Decode(into any) error
}

// NoArguments decodes to nothing: every field keeps its default.
type NoArguments struct{}

// Decode leaves into as it is.
func (NoArguments) Decode(any) error { return nil }

// PluginBuilder makes a plugin from its arguments. It must refuse arguments that make no sense.
type PluginBuilder func(Arguments) (Plugin, error)

// WithoutArguments builds a plugin that has no arguments: any is an error that says where it is.
func WithoutArguments(build func() Plugin) PluginBuilder {
	return WithArguments(nil, func(struct{}) (Plugin, error) { return build(), nil })
}

// Policy builds a plugin that is one function: it registers hooks when a session opens. It
// has no arguments.
func Policy(name string, open func(*Session)) PluginBuilder {
	return WithoutArguments(func() Plugin { return &policy{name, open} })
}

type policy struct {
	name string
	open func(*Session)
}

func (p *policy) Name() string             { return p.name }
func (p *policy) OnSessionOpen(s *Session) { p.open(s) }

// WithArguments reads the arguments into a T before it builds the plugin. What they
// leave out has the value that defaults gives it; with nil, the zero value. Defaults
// are made anew each time, since Decode writes into their slices and maps.
func WithArguments[T any](defaults func() T, build func(T) (Plugin, error)) PluginBuilder {
	return func(args Arguments) (Plugin, error) {
		var a T
		if defaults != nil {
			a = defaults()
		}
		if err := args.Decode(&a); err != nil {
			return nil, err
		}
		return build(a)
	}
}

// Registry knows the plugins that a profile may name.
type Registry struct {
	builders map[string]PluginBuilder
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry { return &Registry{builders: map[string]PluginBuilder{}} }

// RegisterPluginBuilder adds a plugin under its name. A name can be taken only once.
func (r *Registry) RegisterPluginBuilder(name string, b PluginBuilder) error {
	if name == "" || b == nil {
		return fmt.Errorf("a plugin needs a name and a builder")
	}
	if r.builders[name] != nil {
		return fmt.Errorf("plugin %q is registered twice", name)
	}
	r.builders[name] = b
	return nil
}

// Names are the registered names, sorted.
func (r *Registry) Names() []string {
	return slices.Sorted(maps.Keys(r.builders))
}

// Profile lists the plugins of an engine. Their order is the order of filters and of comparisons.
type Profile []PluginConfig

// PluginConfig is one line of a profile.
type PluginConfig struct {
	Name      string
	Weight    int64 // of its scores and of what it says that victims cost; 0 counts as 1
	Arguments Arguments
	Where     string // "file:line", for errors; may be empty
}

// MaxWeight keeps weighted sums far from overflow.
const MaxWeight = 100_000

type weighted struct {
	Plugin
	weight int64
}

// build makes the profile's plugins. It reports every line that cannot be built.
func (r *Registry) build(p Profile) ([]weighted, error) {
	var out []weighted
	var errs []error
	for _, c := range p {
		plugin, err := r.buildOne(c)
		if err == nil && slices.ContainsFunc(out, func(w weighted) bool { return w.Name() == c.Name }) {
			err = errors.New("listed twice")
		}
		if err != nil {
			errs = append(errs, c.failure(err))
			continue
		}
		if d, ok := plugin.(Dependent); ok {
			for _, name := range d.Requires() {
				if !slices.ContainsFunc(p, func(c PluginConfig) bool { return c.Name == name }) {
					errs = append(errs, c.failure(r.remedy(c.Name, name)))
				}
			}
		}
		out = append(out, weighted{plugin, max(1, c.Weight)})
	}
	return out, errors.Join(errs...)
}

// failure says which line of the profile the error is about.
func (c PluginConfig) failure(err error) error {
	err = fmt.Errorf("plugin %s: %w", c.Name, err)
	if c.Where != "" {
		err = fmt.Errorf("%s: %w", c.Where, err)
	}
	return err
}

// remedy says what to do about a plugin that is required and missing.
func (r *Registry) remedy(name, missing string) error {
	if r.builders[missing] == nil {
		return fmt.Errorf("it requires the plugin %s, which is not registered%s", missing, nearest.Hint(missing, r.Names()))
	}
	return fmt.Errorf("it requires the plugin %s, which is not in the profile; add %s, or remove %s", missing, missing, name)
}

func (r *Registry) buildOne(c PluginConfig) (Plugin, error) {
	b := r.builders[c.Name]
	if b == nil {
		return nil, fmt.Errorf("no such plugin%s", nearest.Hint(c.Name, r.Names()))
	}
	if c.Weight < 0 || c.Weight > MaxWeight {
		return nil, fmt.Errorf("weight %d is not between 1 and %d", c.Weight, MaxWeight)
	}
	args := c.Arguments
	if args == nil {
		args = NoArguments{}
	}
	plugin, err := b(args)
	if err != nil {
		return nil, err
	}
	if plugin.Name() != c.Name {
		return nil, fmt.Errorf("the builder made a plugin named %q", plugin.Name())
	}
	return plugin, nil
}
