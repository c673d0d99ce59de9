package models

import (
	"flag"
	"strings"
	"testing"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/kube/internal/testcluster"
)

var listPermissions = flag.Bool("permissions", false, "all tests of the package are run: list the permissions that they used, and those that none of them used")

const (
	deployed       = "../../../deploy/berth.yaml" // what the chart installs
	controllerUser = "system:serviceaccount:berth-system:berth-controller"
	schedulerUser  = "system:serviceaccount:berth-system:berth-scheduler"
)

// chartDocuments returns the documents of these kinds that the chart installs.
func chartDocuments(t testing.TB, kinds ...string) string {
	t.Helper()
	return strings.Join(testcluster.Documents(t, deployed, kinds...), "\n---\n")
}

// requests are the requests that a user has sent.
type requests struct{ count testcluster.Requests }

func (w *world) requestsOf(user string) *requests { w.Helper(); return &requests{w.RequestsOf(user)} }
func (r *requests) writes() int                   { return r.count.Writes() }

// TestZPermissions fails if berth-controller has permissions that no test has used. It is the last
// test of the package. Those of berth-scheduler are checked in the package e2e.
func TestZPermissions(t *testing.T) {
	if !*listPermissions {
		t.Skip("it needs all tests of the package: -permissions")
	}
	testcluster.CheckUsed(t, controllerUser, deployed, "berth-controller", map[testcluster.Permission]string{
		{Verb: "update", Group: v1alpha1.Group, Resource: "models/finalizers"}: "API servers with the admission plugin OwnerReferencesPermissionEnforcement check it when an object with an owner reference is written",
	})
}
