package models

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

var listPermissions = flag.Bool("permissions", false, "all tests of the package are run: list the permissions that none of them used")

const (
	deployed       = "../../../deploy/berth.yaml" // what the chart installs
	controllerUser = "system:serviceaccount:berth-system:berth-controller"
	schedulerUser  = "system:serviceaccount:berth-system:berth-scheduler"
	auditPolicy    = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`
)

// permission is what a request needs.
type permission struct{ verb, group, resource string }

func (p permission) String() string { return p.verb + " " + p.resource + "." + p.group }

// used are the permissions that the programs used, by user, in all tests of the package.
var used = struct {
	sync.Mutex
	by map[string]map[permission]int
}{by: map[string]map[permission]int{}}

// requests are the requests that a user has sent, as the log of the API server has them.
type requests struct {
	count     map[permission]int
	forbidden []string
}

// writes returns how many requests changed something. Leases do not count: they are renewed all the
// time.
func (r *requests) writes() int {
	n := 0
	for p, count := range r.count {
		if !slices.Contains([]string{"get", "list", "watch"}, p.verb) && p.resource != "leases" {
			n += count
		}
	}
	return n
}

// requestsOf reads the log of the API server.
func (w *world) requestsOf(user string) *requests {
	w.Helper()
	out := &requests{count: map[permission]int{}}
	f, err := os.Open(w.audit)
	if err != nil {
		w.Fatal(err)
	}
	defer f.Close()
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var e auditv1.Event
		if json.Unmarshal(scanner.Bytes(), &e) != nil || e.ObjectRef == nil || e.ImpersonatedUser == nil || e.ImpersonatedUser.Username != user {
			continue
		}
		resource := e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			resource += "/" + e.ObjectRef.Subresource
		}
		p := permission{e.Verb, e.ObjectRef.APIGroup, resource}
		if e.ResponseStatus != nil && e.ResponseStatus.Code == 403 {
			out.forbidden = append(out.forbidden, p.String()+" "+e.RequestURI)
		}
		out.count[p]++
	}
	return out
}

// checkPermissions fails the test if a request of Berth was forbidden, and notes which permissions
// were used.
func (w *world) checkPermissions(t testing.TB) {
	for _, user := range []string{controllerUser, schedulerUser} {
		r := w.requestsOf(user)
		if len(r.forbidden) > 0 {
			slices.Sort(r.forbidden)
			t.Errorf("%s was forbidden: %q", user, slices.Compact(r.forbidden))
		}
		used.Lock()
		if used.by[user] == nil {
			used.by[user] = map[permission]int{}
		}
		for p, n := range r.count {
			used.by[user][p] += n
		}
		used.Unlock()
	}
}

// actAs returns a kubeconfig with the permissions of the user.
func (w *world) actAs(user string) string {
	w.Helper()
	config, err := clientcmd.LoadFromFile(w.CP.Kubeconfig())
	if err != nil {
		w.Fatal(err)
	}
	for _, info := range config.AuthInfos {
		info.Impersonate = user
	}
	path := filepath.Join(w.Logs, "kubeconfig-"+strings.ReplaceAll(user, ":", "-"))
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		w.Fatal(err)
	}
	return path
}

// chartDocuments returns the documents of these kinds that the chart installs.
func chartDocuments(t testing.TB, kinds ...string) string {
	t.Helper()
	text, err := os.ReadFile(deployed)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, document := range strings.Split(string(text), "\n---\n") {
		var o struct{ Kind string }
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(kinds, o.Kind) {
			out = append(out, document)
		}
	}
	if len(out) == 0 {
		t.Fatalf("the chart installs none of %q", kinds)
	}
	return strings.Join(out, "\n---\n")
}

// granted returns the permissions that the chart grants to the program.
func granted(t testing.TB, program string) map[permission]bool {
	t.Helper()
	out := map[permission]bool{}
	for _, document := range strings.Split(chartDocuments(t, "ClusterRole", "Role"), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		if role.Name != program {
			continue
		}
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						out[permission{verb, group, resource}] = true
					}
				}
			}
		}
	}
	return out
}

// TestZPermissions lists the permissions of berth-controller that no test has used. It is the last
// test of the package.
func TestZPermissions(t *testing.T) {
	if !*listPermissions {
		t.Skip("it needs all tests of the package: -permissions")
	}
	var unused []string
	for p := range granted(t, "berth-controller") {
		if used.by[controllerUser][p] == 0 {
			unused = append(unused, p.String())
		}
	}
	slices.Sort(unused)
	var list []string
	for _, p := range slices.SortedFunc(maps.Keys(used.by[controllerUser]), func(a, b permission) int { return strings.Compare(a.String(), b.String()) }) {
		list = append(list, fmt.Sprintf("%s (%d)", p, used.by[controllerUser][p]))
	}
	t.Logf("used: %s", strings.Join(list, ", "))
	// The API server of the tests does not check owner references.
	unused = slices.DeleteFunc(unused, func(s string) bool { return s == "update models/finalizers.berth.dev" })
	if len(unused) > 0 {
		t.Errorf("never used: %q", unused)
	}
}
