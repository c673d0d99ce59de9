package main

import (
	"bytes"
	"strings"
	"testing"
)

// berth runs the whole command with the plugins of this module.
func berth(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func TestScenarios(t *testing.T) {
	code, out, errs := berth(t, "verify", "scenarios")
	if code != 0 || !strings.HasSuffix(out, " passed, 0 failed\n") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

func TestReportFollowsTheSimulation(t *testing.T) {
	code, _, errs := berth(t, "simulate", "scenarios/namespace-cap.yaml")
	if want := "namespace research: 2 tasks\nnamespace web: 2 tasks\n"; code != 0 || !strings.HasSuffix(errs, want) {
		t.Errorf("exit code %d, stderr %q, want it to end with %q", code, errs, want)
	}
}

func TestEveryPluginIsRegistered(t *testing.T) {
	_, out, _ := berth(t, "plugins")
	for _, name := range []string{"NamespaceAllocationTracker", "Keep", "TeamNodes", "LostWork", "Licenses"} {
		if !strings.Contains(out, name) {
			t.Errorf("%s is missing from\n%s", name, out)
		}
	}
}
