package command

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/kube/internal/intree"
	"github.com/berth-project/berth/plugins/consolidate"
	"github.com/berth-project/berth/plugins/doublebooking"
	"github.com/berth-project/berth/plugins/preempt"
	"github.com/berth-project/berth/plugins/standard"
)

// TestMistakes checks that a mistake is explained, and that nothing is started.
func TestMistakes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	write := func(text string) string {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	const head = "apiVersion: berth.dev/v1alpha1\nkind: SchedulerConfiguration\n"
	for name, tc := range map[string]struct {
		args []string
		want string
		code int
	}{
		"a certificate without key":  {[]string{"--tls-cert-file", "a.crt"}, "--tls-cert-file and --tls-private-key-file: want both or neither", exitUsage},
		"profiles served nowhere":    {[]string{"--profiling", "--secure-address", ""}, "--profiling: want a --secure-address", exitUsage},
		"an unknown flag":            {[]string{"--nonsense"}, "unknown flag: --nonsense", exitUsage},
		"an argument":                {[]string{"run"}, `"run" is not a flag; see --help`, exitUsage},
		"no such configuration":      {[]string{"--config", filepath.Join(t.TempDir(), "none.yaml")}, "none.yaml", exitUsage},
		"no configuration in it":     {[]string{"--config", write("apiVersion: berth.dev/v1alpha1\nkind: Queue\nmetadata: {name: a}\n")}, "has no SchedulerConfiguration", exitUsage},
		"no kubeconfig of that name": {[]string{"--kubeconfig", filepath.Join(t.TempDir(), "none")}, "name a kubeconfig file with --kubeconfig", exitError},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if code := Main(standard.Registry(), tc.args, &out); code != tc.code || !strings.Contains(out.String(), tc.want) {
				t.Errorf("exit code %d, want %d; %s", code, tc.code, out.String())
			}
		})
	}
	t.Run("an unknown field", func(t *testing.T) {
		var out bytes.Buffer
		if code := Main(standard.Registry(), []string{"--config", write(head + "plugin: []\n")}, &out); code != exitUsage || !strings.Contains(out.String(), "c.yaml:3:1") {
			t.Errorf("exit code %d; %s", code, out.String())
		}
	})
}

// TestProfile checks which plugins take part.
func TestProfile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	text := "apiVersion: berth.dev/v1alpha1\nkind: SchedulerConfiguration\nplugins: [{name: Preempt, disabled: true}, {name: Consolidate, disabled: true}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	has := func(configuration string, evictions bool) map[string]bool {
		profiles, err := readProfiles(configuration, evictions)
		if err != nil || len(profiles) != 1 {
			t.Fatal(err, profiles)
		}
		out := map[string]bool{}
		for _, p := range profiles[0].Plugins {
			out[p.Name] = true
		}
		return out
	}
	if with := has("", true); !with[intree.Name] || !with[preempt.Name] || with[consolidate.Name] {
		t.Errorf("the default profile has %v", with)
	}
	if has("", true)[doublebooking.Name] == has("", false)[doublebooking.Name] {
		t.Error("DoubleBooking evicts pods, and takes part only if evictions are allowed")
	}
	if without := has("", false); without[preempt.Name] || !without[intree.Name] {
		t.Errorf("without evictions, the profile has %v", without)
	}
	if already := has(file, false); already[preempt.Name] || already[consolidate.Name] || !already[intree.Name] {
		t.Errorf("without evictions, a profile that disables them has %v", already)
	}
}

// TestProfiles checks that each profile has the filters of Kubernetes, and that the engine has
// them once.
func TestProfiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	text := "apiVersion: berth.dev/v1alpha1\nkind: SchedulerConfiguration\nprofiles:\n- schedulerName: a\n- schedulerName: b\n  plugins: [{name: DeviceOrder, disabled: true}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	profiles, err := readProfiles(file, true)
	if err != nil || len(profiles) != 2 {
		t.Fatal(err, profiles)
	}
	for _, p := range profiles {
		if last := p.Plugins[len(p.Plugins)-1]; last.Name != intree.Name {
			t.Errorf("the last plugin of profile %s is %s", p.Name, last.Name)
		}
	}
	registry, built := standard.Registry(), 0
	if err := registry.RegisterPluginBuilder(intree.Name, func(a engine.Arguments) (engine.Plugin, error) {
		built++
		return intree.Builder(intree.NewStore())(a)
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.NewProfiles(registry, profiles); err != nil || built != 1 {
		t.Errorf("the filters were built %d times: %v", built, err)
	}
}

// TestSchedulerNames checks which scheduler names are used.
func TestSchedulerNames(t *testing.T) {
	one, two := []engine.NamedProfile{{}}, []engine.NamedProfile{{Name: "b"}, {Name: "a"}}
	for name, c := range map[string]struct {
		profiles []engine.NamedProfile
		flag     []string
		given    bool
		want     []string
		err      string
	}{
		"the default":            {one, []string{DefaultName}, false, []string{DefaultName}, ""},
		"the flag":               {one, []string{"x", "y"}, true, []string{"x", "y"}, ""},
		"no name":                {one, nil, true, nil, "--scheduler-name: want at least one name, such as berth-scheduler"},
		"profiles":               {two, []string{DefaultName}, false, []string{"b", "a"}, ""},
		"profiles and the same":  {two, []string{"a", "b"}, true, []string{"a", "b"}, ""},
		"profiles and one other": {two, []string{"a", "c"}, true, nil, "--scheduler-name a,c: the profiles of the configuration have the names b, a, which are the scheduler names; leave the flag out"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := schedulerNames(c.profiles, c.flag, c.given)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if !slices.Equal(got, c.want) || text != c.err {
				t.Errorf("%v, %q; want %v, %q", got, text, c.want, c.err)
			}
		})
	}
}
