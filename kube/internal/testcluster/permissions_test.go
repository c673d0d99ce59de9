package testcluster

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestReadAudit counts the requests of one user. One was forbidden while the API server was started.
// The last line is incomplete.
func TestReadAudit(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.log")
	text := `{"verb":"watch","impersonatedUser":{"username":"a"},"objectRef":{"resource":"pods"},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"verb":"create","impersonatedUser":{"username":"a"},"objectRef":{"resource":"pods","subresource":"binding"},"responseStatus":{"code":403},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"verb":"get","requestReceivedTimestamp":"2026-01-02T00:00:03.000000Z","impersonatedUser":{"username":"a"},"objectRef":{"resource":"pods"},"annotations":{"authorization.k8s.io/decision":"forbid"}}
{"verb":"patch","impersonatedUser":{"username":"a"},"objectRef":{"resource":"secrets"},"responseStatus":{"code":201}}
{"verb":"update","requestURI":"/x","requestReceivedTimestamp":"2026-01-02T00:00:05.000000Z","impersonatedUser":{"username":"a"},"objectRef":{"resource":"leases","apiGroup":"coordination.k8s.io"},"annotations":{"authorization.k8s.io/decision":"forbid"}}
{"verb":"get","impersonatedUser":{"username":"b"},"objectRef":{"resource":"nodes"}}
{"verb":"get","impersonatedUser":{"username":"a"}}
{"verb":"get","objectRef":{"resource":"nodes"}}
{"verb":"get","impersonatedUser":{"username":"a"},"objectRef":{"resource":"no`
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	c := &Cluster{audit: log, starting: []period{{start, start.Add(4 * time.Second)}}}
	got, forbidden, err := c.readAudit("a")
	if err != nil {
		t.Fatal(err)
	}
	want := Requests{{"watch", "", "pods"}: 1, {"get", "", "pods"}: 1, {"create", "", "pods/binding"}: 1, {"patch", "", "secrets"}: 1, {"create", "", "secrets"}: 0, {"update", "coordination.k8s.io", "leases"}: 1}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if want := []string{"update leases.coordination.k8s.io /x"}; !slices.Equal(forbidden, want) {
		t.Errorf("forbidden: %q, want %q", forbidden, want)
	}
	if n := got.Writes(); n != 2 {
		t.Errorf("%d requests write, want 2", n)
	}
	for p, want := range map[Permission]bool{{"list", "", "pods"}: true, {"create", "", "secrets"}: true, {"get", "", "nodes"}: false, {"list", "coordination.k8s.io", "leases"}: false} {
		if got.uses(p) != want {
			t.Errorf("%s is used: %t, want %t", p, !want, want)
		}
	}
}
