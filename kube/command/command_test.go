package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-project/berth/kube/internal/intree"
	"github.com/berth-project/berth/plugins/consolidate"
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
	has := func(f flags) map[string]bool {
		profile, err := f.profile()
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]bool{}
		for _, p := range profile {
			out[p.Name] = true
		}
		return out
	}
	if with := has(flags{evictions: true}); !with[intree.Name] || !with[preempt.Name] || with[consolidate.Name] {
		t.Errorf("the default profile has %v", with)
	}
	if without := has(flags{}); without[preempt.Name] || !without[intree.Name] {
		t.Errorf("without evictions, the profile has %v", without)
	}
}
