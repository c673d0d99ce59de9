package e2e

import (
	"flag"
	"testing"

	"github.com/berth-project/berth/kube/internal/testcluster"
)

var listPermissions = flag.Bool("permissions", false, "all tests of the package are run: list the permissions that they used, and those that none of them used")

const (
	permissions   = "../config/rbac.yaml" // the chart has the same
	schedulerUser = "system:serviceaccount:kube-system:berth-scheduler"
)

// TestZPermissions fails if berth-scheduler has permissions that no test has used. It is the last
// test of the package.
func TestZPermissions(t *testing.T) {
	if !*listPermissions {
		t.Skip("it needs all tests of the package: -permissions")
	}
	const reason = "the API server checks it beside resourceclaims/status when the allocation of a claim is written"
	testcluster.CheckUsed(t, schedulerUser, permissions, "berth-scheduler", map[testcluster.Permission]string{
		{Verb: "update", Group: "resource.k8s.io", Resource: "resourceclaims/binding"}: reason,
		{Verb: "patch", Group: "resource.k8s.io", Resource: "resourceclaims/binding"}:  reason,
	})
}
