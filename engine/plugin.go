package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/berth-project/berth/internal/nearest"
)

// Plugin is one policy. The engine calls OnSessionOpen at the beginning of each session, and
// the plugin registers its hooks there. A plugin may keep data from session to session, for
// example as a cache, but decisions may depend only on the State, the profile and the options
// of the session.
type Plugin interface {
	Name() string
	OnSessionOpen(*Session)
}

// Closer is a plugin with a function that is called when a session closes.
type Closer interface {
	OnSessionClose(*Session)
}

// Dependent is a plugin that works only together with other plugins. New returns an error
// for a profile that has the plugin and lacks one of the plugins that it requires.
type Dependent interface {
	Requires() []string // the names of the required plugins
}

// Arguments is a plugin's configuration as the user wrote it. Decode is strict: an unknown
// field, or a value of the wrong type, is an error that names its place in the file.
type Arguments interface {
	Decode(into any) error
}

// NoArguments is an empty configuration: every field keeps its default.
type NoArguments struct{}

// Decode does not change into.
func (NoArguments) Decode(any) error { return nil }

// PluginBuilder makes a plugin from its arguments. It must return an error for arguments
// that make no sense.
type PluginBuilder func(Arguments) (Plugin, error)

// WithoutArguments returns a builder for a plugin that has no arguments. An argument in the
// profile is an error that names its place in the file.
func WithoutArguments(build func() Plugin) PluginBuilder {
	return WithArguments(nil, func(struct{}) (Plugin, error) { return build(), nil })
}

// Policy returns a builder for a plugin that consists of one function and has no arguments.
// The function is called when a session opens, and registers hooks.
func Policy(name string, open func(*Session)) PluginBuilder {
	return WithoutArguments(func() Plugin { return &policy{name, open} })
}

type policy struct {
	name string
	open func(*Session)
}

func (p *policy) Name() string             { return p.name }
func (p *policy) OnSessionOpen(s *Session) { p.open(s) }

// WithArguments returns a builder that decodes the arguments into a T and passes it to build.
// Fields that the arguments leave out have the values that defaults returns, or their zero
// values if defaults is nil. It calls defaults for each plugin that it builds, since Decode
// writes into slices and maps.
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

// Registry holds the builders of the plugins that a profile may name.
type Registry struct {
	builders map[string]PluginBuilder
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry { return &Registry{builders: map[string]PluginBuilder{}} }

// RegisterPluginBuilder adds a plugin under its name. It returns an error if the name is
// empty or is registered already, or if the builder is nil.
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

// Names returns the registered names, sorted.
func (r *Registry) Names() []string {
	return slices.Sorted(maps.Keys(r.builders))
}

// Profile lists the plugins of an engine, or of one of its profiles (see NewProfiles). Filters
// and comparisons are called in the order of this list.
type Profile []PluginConfig

// PluginConfig is one plugin of a profile.
type PluginConfig struct {
	Name      string
	Weight    int64 // multiplies its scores and its VictimCosts; 0 counts as 1
	Arguments Arguments
	Where     string // "file:line", for errors; may be empty
}

// MaxWeight is the highest weight of a plugin. It keeps weighted sums from overflowing.
const MaxWeight = 100_000

// weighted is a plugin of an engine.
type weighted struct {
	Plugin
	name     string // Plugin.Name
	weight   int64
	profiles *members // the profiles that have it; nil means all
	earlier  bool     // a plugin before it has the same name, for other profiles
	// key is the name under which its published parameters are kept; "" means its own name.
	key string
}

// build makes the plugins of the profiles. The error names every plugin that cannot be built.
func (r *Registry) build(profiles []NamedProfile) ([]weighted, error) {
	var out []weighted
	var built []instance
	var errs []error
	for _, c := range mergeProfiles(profiles) {
		plugin, err := r.buildOne(c.PluginConfig)
		if err == nil && slices.ContainsFunc(built, c.overlaps) {
			err = errors.New("listed twice")
		}
		if err != nil {
			errs = append(errs, c.failure(err))
			continue
		}
		errs = append(errs, checkShared(plugin, &c, profiles), r.checkRequired(plugin, &c, profiles))
		p := weighted{Plugin: plugin, name: plugin.Name(), weight: max(1, c.Weight), profiles: membersOf(profiles, c.in)}
		if p.earlier = slices.ContainsFunc(built, func(o instance) bool { return o.Name == c.Name }); p.earlier {
			p.key = c.Name + "@" + profiles[slices.Index(c.in, true)].Name
		}
		out, built = append(out, p), append(built, c)
	}
	return out, errors.Join(errs...)
}

// overlaps reports whether a profile has both entries under the same name.
func (c *instance) overlaps(o instance) bool {
	for k := range c.in {
		if c.in[k] && o.in[k] && c.Name == o.Name {
			return true
		}
	}
	return false
}

// failure adds the plugin's name and its place in the profile to the error.
func (c PluginConfig) failure(err error) error {
	err = fmt.Errorf("plugin %s: %w", c.Name, err)
	if c.Where != "" {
		err = fmt.Errorf("%s: %w", c.Where, err)
	}
	return err
}

// remedy returns the error for a required plugin that is missing in the profile, with what to
// do about it.
func (r *Registry) remedy(name, missing, profile string) error {
	if r.builders[missing] == nil {
		return fmt.Errorf("it requires the plugin %s, which is not registered%s", missing, nearest.Hint(missing, r.Names()))
	}
	in := "the profile"
	if profile != "" {
		in += fmt.Sprintf(" %q", profile)
	}
	return fmt.Errorf("it requires the plugin %s, which is not in %s; add %s, or remove %s", missing, in, missing, name)
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
