package testcluster

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-project/berth/kube/internal/controlplane"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// auditPolicy makes the API server log all requests. A policy cannot select impersonated users.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// Permission is what a request needs, and what a rule of a role grants.
type Permission struct{ Verb, Group, Resource string }

func (p Permission) String() string {
	if p.Group == "" {
		return p.Verb + " " + p.Resource
	}
	return p.Verb + " " + p.Resource + "." + p.Group
}

// Requests are how many requests were sent, by the permission that they need. A watch counts twice:
// when it begins, and when it ends. A request that needs a second permission is not counted there
// again: such a permission may have 0 requests.
type Requests map[Permission]int

// Writes returns how many requests changed something. Leases do not count: they are renewed all the
// time.
func (r Requests) Writes() int {
	n := 0
	for p, count := range r {
		if !slices.Contains([]string{"get", "list", "watch"}, p.Verb) && p.Resource != "leases" {
			n += count
		}
	}
	return n
}

// uses reports whether there are requests that need the permission. Clients list objects by a watch
// if the API server can, and by a list if it cannot.
func (r Requests) uses(p Permission) bool {
	_, used := r[p]
	return used || p.Verb == "list" && r[Permission{"watch", p.Group, p.Resource}] > 0
}

// used are the requests of all tests of the process, by user.
var used = struct {
	sync.Mutex
	by map[string]Requests
}{by: map[string]Requests{}}

// NewRecorded starts a control plane as NewWith does, and records the requests of the users, which
// are those of ActAs. The test fails if one of their requests is forbidden. Benchmarks record
// nothing.
func NewRecorded(t testing.TB, o controlplane.Options, users ...string) *Cluster {
	t.Helper()
	if _, measures := t.(*testing.B); measures {
		return NewWith(t, o)
	}
	dir := t.TempDir()
	policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Flags = maps.Clone(o.Flags)
	if o.Flags == nil {
		o.Flags = map[controlplane.Component][]string{}
	}
	o.Flags[controlplane.APIServer] = append(slices.Clone(o.Flags[controlplane.APIServer]),
		"--audit-policy-file", policy, "--audit-log-path", log, "--audit-log-maxsize", "0") // one file
	c := NewWith(t, o)
	c.audit = log
	t.Cleanup(func() { // programs that were started later have ended
		for _, user := range users {
			c.record(t, user)
		}
	})
	return c
}

// period is a time during which an API server starts.
type period struct{ from, to time.Time }

// Restart restarts a component, and returns when it is ready. Requests that an API server forbids
// before do not count: it does not know the roles yet.
func (c *Cluster) Restart(component controlplane.Component) {
	c.Helper()
	began := time.Now()
	if err := c.CP.Restart(c.Ctx, component); err != nil {
		c.Fatal(err)
	}
	c.starting = append(c.starting, period{began, time.Now()})
}

// startingAt reports whether the API server was being started at the time.
func (c *Cluster) startingAt(at time.Time) bool {
	return slices.ContainsFunc(c.starting, func(p period) bool { return at.After(p.from) && at.Before(p.to) })
}

// record fails the test if a request of the user was forbidden, and notes the permissions that the
// user has used.
func (c *Cluster) record(t testing.TB, user string) {
	t.Helper()
	requests, forbidden, err := c.readAudit(user)
	if err != nil {
		t.Error(err)
	}
	if len(forbidden) > 0 {
		slices.Sort(forbidden)
		t.Errorf("%s was forbidden: %q", user, slices.Compact(forbidden))
	}
	used.Lock()
	defer used.Unlock()
	if used.by[user] == nil {
		used.by[user] = Requests{}
	}
	for p, n := range requests {
		used.by[user][p] += n
	}
}

// RequestsOf returns the requests that a user of NewRecorded has sent so far.
func (c *Cluster) RequestsOf(user string) Requests {
	c.Helper()
	requests, _, err := c.readAudit(user)
	if err != nil {
		c.Fatal(err)
	}
	return requests
}

// readAudit returns the requests of the user in the log of the API server, and those of them that
// the user has no permission for. A request that is refused for another reason, such as an object in a
// namespace that is being deleted, is not among these.
func (c *Cluster) readAudit(user string) (out Requests, forbidden []string, err error) {
	f, err := os.Open(c.audit)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	out = Requests{}
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var e auditv1.Event
		if json.Unmarshal(scanner.Bytes(), &e) != nil || e.ObjectRef == nil || e.ImpersonatedUser == nil || e.ImpersonatedUser.Username != user {
			continue // the last line is incomplete if the API server was killed
		}
		p := Permission{e.Verb, e.ObjectRef.APIGroup, e.ObjectRef.Resource}
		if e.ObjectRef.Subresource != "" {
			p.Resource += "/" + e.ObjectRef.Subresource
		}
		if e.Annotations["authorization.k8s.io/decision"] == "forbid" && !c.startingAt(e.RequestReceivedTimestamp.Time) {
			forbidden = append(forbidden, p.String()+" "+e.RequestURI)
		}
		out[p]++
		if e.Verb == "patch" && e.ResponseStatus != nil && e.ResponseStatus.Code == http.StatusCreated {
			out[Permission{"create", p.Group, p.Resource}] += 0
		}
	}
	return out, forbidden, scanner.Err()
}

// ConfigAs returns a configuration of clients with the permissions of the user.
func (c *Cluster) ConfigAs(user string) *rest.Config {
	config := c.CP.Config()
	config.Impersonate.UserName = user
	return config
}

// ActAs returns the path of a kubeconfig with the permissions of the user.
func (c *Cluster) ActAs(user string) string {
	c.Helper()
	config, err := clientcmd.LoadFromFile(c.CP.Kubeconfig())
	if err != nil {
		c.Fatal(err)
	}
	for _, info := range config.AuthInfos {
		info.Impersonate = user
	}
	path := filepath.Join(c.Logs, "kubeconfig-"+strings.ReplaceAll(user, ":", "-"))
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		c.Fatal(err)
	}
	return path
}

// Documents returns the documents of these kinds in a file of manifests.
func Documents(t testing.TB, file string, kinds ...string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
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
		t.Fatalf("%s has none of %q", file, kinds)
	}
	return out
}

// granted returns the permissions of the roles with the name in a file of manifests.
func granted(t testing.TB, file, name string) map[Permission]bool {
	t.Helper()
	out := map[Permission]bool{}
	for _, document := range Documents(t, file, "ClusterRole", "Role") {
		var role rbacv1.ClusterRole // a Role has the same rules
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		if role.Name != name {
			continue
		}
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						out[Permission{verb, group, resource}] = true
					}
				}
			}
		}
	}
	return out
}

// CheckUsed logs the permissions that the user has used in the tests so far, and fails the test if
// the roles with the name in the file of manifests grant others. Those of unseen, which has a reason
// for each, are needed although no request shows it.
func CheckUsed(t testing.TB, user, file, name string, unseen map[Permission]string) {
	t.Helper()
	used.Lock()
	defer used.Unlock()
	requests := used.by[user]
	var list, unused []string
	for p, n := range requests {
		list = append(list, fmt.Sprintf("%s (%d)", p, n))
	}
	slices.Sort(list)
	t.Logf("%s used %d permissions:\n%s", user, len(list), strings.Join(list, "\n"))
	grants := granted(t, file, name)
	for p := range grants {
		if _, known := unseen[p]; !known && !requests.uses(p) {
			unused = append(unused, p.String())
		}
	}
	if len(grants) == 0 || len(unused) > 0 {
		slices.Sort(unused)
		t.Errorf("%s grants %d permissions to %s, of which %d were never used:\n%s", file, len(grants), name, len(unused), strings.Join(unused, "\n"))
	}
	for p, reason := range unseen {
		if t.Logf("%s is needed: %s", p, reason); !grants[p] || requests.uses(p) {
			t.Errorf("%s is not granted, or was used", p)
		}
	}
}
