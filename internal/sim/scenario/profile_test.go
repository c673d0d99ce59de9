package scenario

import (
	"slices"
	"testing"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/manifest"
)

// TestProfilePlaces checks the positions of plugins in the profile.
func TestProfilePlaces(t *testing.T) {
	const head = "apiVersion: berth.dev/v1alpha1\nkind: SchedulerConfiguration\nplugins:\n"
	tests := map[string]struct{ plugins, before, after, err string }{
		"before":         {plugins: "- {name: Mine, before: NodeResourcesFit}", before: "Mine", after: "NodeResourcesFit"},
		"after":          {plugins: "- {name: Mine, after: NodeResourcesFit}", before: "NodeResourcesFit", after: "Mine"},
		"first":          {plugins: "- {name: Mine, position: First}", before: "Mine", after: "FairShare"},
		"last":           {plugins: "- {name: FairShare, position: Last}\n- {name: Mine}", before: "Mine", after: "FairShare"},
		"no such plugin": {plugins: "- name: Mine\n  before: NodeResourceFit", err: `f.yaml:4: plugin Mine: its place is before NodeResourceFit, which is not in the profile; did you mean "NodeResourcesFit"?`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b, err := manifest.Parse("f.yaml", []byte(head+tt.plugins))
			if err != nil {
				t.Fatal(err)
			}
			p, err := Profile(b)
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Errorf("got %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			at := func(name string) int {
				return slices.IndexFunc(p, func(c engine.PluginConfig) bool { return c.Name == name })
			}
			if at(tt.before) < 0 || at(tt.before)+1 != at(tt.after) {
				t.Errorf("%s is number %d, %s number %d; want one directly before the other", tt.before, at(tt.before), tt.after, at(tt.after))
			}
		})
	}
}
