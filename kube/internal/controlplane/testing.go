package controlplane

import "testing"

// StartForTest starts a control plane and stops it when the test has ended. It fails the
// test if the control plane does not start.
func StartForTest(t testing.TB, o Options) *ControlPlane {
	t.Helper()
	cp, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cp
}
