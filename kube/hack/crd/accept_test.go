package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/kube/internal/crdtest"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func queue(name, fields string) string {
	return "apiVersion: berth.dev/v1alpha1\nkind: Queue\nmetadata: {name: " + name + "}\n" + fields + "\n"
}

// TestServer checks the definitions on an API server.
func TestServer(t *testing.T) {
	s := startServer(t)
	t.Run("scenarios and examples", s.testDocuments)
	t.Run("rejected", s.testRejected)
	t.Run("accepted", s.testAccepted)
	t.Run("status", s.testStatus)
	t.Run("same as the reader", s.testSameAsReader)
	m := s.models()
	t.Run("models of scenarios and examples", m.testModelDocuments)
	t.Run("rejected models", m.testRejectedModels)
	t.Run("accepted models", m.testAcceptedModels)
	t.Run("status and scale of models", m.testModelStatus)
	t.Run("models, same as the reader", m.testModelsSameAsReader)
}

// testDocuments creates every Queue of the scenarios and examples. The queue that the API
// server returns means the same as the one in the file.
func (s server) testDocuments(t *testing.T) {
	env := convert.Environment{DeviceResources: map[string]bool{}}
	files, count := 0, 0
	for _, dir := range []string{"scenarios", "examples"} {
		documents := documents(t, filepath.Join(module, "..", dir), v1alpha1.KindQueue)
		for _, file := range slices.Sorted(maps.Keys(documents)) {
			files++
			for _, text := range documents[file] {
				count++
				u := crdtest.Object(t, text)
				got, err := s.create(t.Context(), u)
				if err != nil {
					t.Errorf("%s: %v", file, err)
					continue
				}
				want, _ := convert.Queue(crdtest.Queue(t, u), &env)
				have, _ := convert.Queue(crdtest.Queue(t, got), &env)
				// The API server sets the time of creation, and drops the status.
				ignored := cmpopts.IgnoreFields(cluster.Queue{}, "Created", "Past", "Tier")
				if diff := cmp.Diff(want, have, ignored, cmpopts.IgnoreUnexported(cluster.Queue{})); diff != "" {
					t.Errorf("%s: queue %s (-file +server):\n%s", file, u.GetName(), diff)
				}
				if want.Tier != have.Tier && (want.Tier != "" || have.Tier != cluster.TierStandard) {
					t.Errorf("%s: queue %s is of tier %q, and on the server of %q", file, u.GetName(), want.Tier, have.Tier)
				}
			}
			if err := s.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d queues of %d files", count, files)
	if count < 300 {
		t.Errorf("only %d queues were found", count)
	}
}

// causes returns the messages of a rejection, without the value that was rejected.
func causes(err error) string {
	var status apierrors.APIStatus
	if err == nil {
		return ""
	}
	if s, ok := err.(apierrors.APIStatus); ok {
		status = s
	}
	if status == nil || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return err.Error()
	}
	var out []string
	for _, c := range status.Status().Details.Causes {
		_, message, found := strings.Cut(c.Message, `": `)
		if !found {
			message = c.Message
		}
		if !strings.Contains(message, "some validation rules were not checked") {
			out = append(out, c.Field+": "+message)
		}
	}
	return strings.Join(out, "; ")
}

// readerProblem returns what the reader of manifests reports about a file. Queue top is
// among its objects, so that other queues can be below it.
func readerProblem(text string) string {
	b, err := manifest.Parse("f", []byte(text+"---\n"+queue("top", "")))
	if err == nil {
		err = b.Validate()
	}
	if err == nil {
		_, err = b.State()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// testRejected creates queues that are not valid. The reader of manifests rejects them as
// well, except those with accepted set: the names of Kubernetes are stricter, a custom
// resource has no decimal numbers in place of quantities, and the definition limits sizes.
func (s server) testRejected(t *testing.T) {
	many := func(n int, entry string) string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprintf(entry, i))
		}
		return "{" + strings.Join(out, ", ") + "}"
	}
	for name, tc := range map[string]struct {
		text, want string
		accepted   bool // by the reader of manifests
	}{
		"its own parent":                            {queue("a", "spec: {parent: a}"), "<nil>: Invalid value: the queue is its own parent; name another, or leave it out", false},
		"below the default queue":                   {queue("a", "spec: {parent: default}"), "<nil>: Invalid value: queue default cannot be a parent: it holds the jobs that name no queue; name another parent", false},
		"the default queue below another":           {queue("default", "spec: {parent: top}"), "<nil>: Invalid value: the default queue is at the top; leave the parent out", false},
		"no name of a parent":                       {queue("a", "spec: {parent: Team_A}"), "spec.parent: spec.parent in body should match '^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$'", false},
		"tier":                                      {queue("a", "spec: {tier: Gold}"), `spec.tier: supported values: "", "Guaranteed", "Standard", "Scavenger"`, false},
		"CPU class in place of a tier":              {queue("a", "spec: {tier: BestEffort}"), `spec.tier: supported values: "", "Guaranteed", "Standard", "Scavenger"`, false},
		"priority too large":                        {queue("a", "spec: {priority: 2147483648}"), "<nil>: Checked value must be of type integer with format int32 in spec.priority; spec.priority: Invalid value: 2147483648: spec.priority in body should be less than or equal to 2147483647", false},
		"priority as text":                          {queue("a", `spec: {priority: "1"}`), `spec.priority: spec.priority in body must be of type integer: "string"`, false},
		"negative weight":                           {queue("a", "spec: {weight: -1}"), "spec.weight: Invalid value: -1: spec.weight in body should be greater than or equal to 0", false},
		"weight too large":                          {queue("a", "spec: {weight: 100001}"), "spec.weight: Invalid value: 100001: spec.weight in body should be less than or equal to 100000", false},
		"fraction of a weight":                      {queue("a", "spec: {weight: 1.5}"), `spec.weight: spec.weight in body must be of type int64: "float64"; <nil>: Checked value must be of type integer with format int64 in spec.weight`, false},
		"weight of a resource":                      {queue("a", "spec: {overQuotaWeight: {cpu: -1}}"), "spec.overQuotaWeight.cpu: Invalid value: -1: spec.overQuotaWeight.cpu in body should be greater than or equal to 0", false},
		"negative quota":                            {queue("a", "spec: {quota: {cpu: -8}}"), "spec.quota[cpu]: Invalid value: -8: the amount is negative", false},
		"negative quota as text":                    {queue("a", `spec: {quota: {memory: "-8Gi"}}`), "spec.quota[memory]: the amount is negative", false},
		"negative limit":                            {queue("a", "spec: {limits: {nvidia.com/gpu: -1}}"), "spec.limits[nvidia.com/gpu]: Invalid value: -1: the amount is negative", false},
		"no quantity":                               {queue("a", "spec: {quota: {cpu: unlimitd}}"), "spec.quota[cpu]: want a quantity such as 8, 500m, 80Gi or 1.5Ti", false},
		"unlimited limit":                           {queue("a", "spec: {limits: {cpu: unlimited}}"), "spec.limits[cpu]: want a quantity such as 8, 500m, 80Gi or 1.5Ti", false},
		"empty quantity":                            {queue("a", `spec: {limits: {cpu: ""}}`), "spec.limits[cpu]: want a quantity such as 8, 500m, 80Gi or 1.5Ti", false},
		"quantity with a large exponent":            {queue("a", `spec: {limits: {cpu: "1e999999999"}}`), "spec.limits[cpu]: want a quantity such as 8, 500m, 80Gi or 1.5Ti", false},
		"exponent before a space":                   {queue("a", `spec: {limits: {cpu: "1e999999999 "}}`), "spec.limits[cpu]: want a quantity such as 8, 500m, 80Gi or 1.5Ti", false},
		"quantity with a small exponent":            {queue("a", `spec: {limits: {cpu: "1e-31"}}`), "spec.limits[cpu]: want a quantity such as 8, 500m, 80Gi or 1.5Ti", false},
		"quantity too long":                         {queue("a", `spec: {limits: {memory: "`+strings.Repeat("0", 40)+`1"}}`), "spec.limits.memory: Too long: may not be more than 40 bytes", false},
		"too many cores":                            {queue("a", "spec: {limits: {cpu: 1073741825}}"), "spec.limits: Invalid value: the amount is too large: cpu; the most is 1073741824 for cores and devices, and 1Ei for other resources", false},
		"too many devices":                          {queue("a", "spec: {quota: {nvidia.com/mig-1g.10gb: 2Gi}}"), "spec.quota: Invalid value: the amount is too large: nvidia.com/mig-1g.10gb; the most is 1073741824 for cores and devices, and 1Ei for other resources", false},
		"too much memory":                           {queue("a", "spec: {limits: {memory: 2Ei}}"), "spec.limits: Invalid value: the amount is too large: memory; the most is 1073741824 for cores and devices, and 1Ei for other resources", false},
		"far too much memory":                       {queue("a", `spec: {limits: {memory: "1e30"}}`), "spec.limits: Invalid value: the amount is too large: memory; the most is 1073741824 for cores and devices, and 1Ei for other resources", false},
		"no whole number":                           {queue("a", "spec: {quota: {pods: 1500m}}"), "spec.quota: Invalid value: the amount is not a whole number, and the resource is counted in whole numbers: pods", false},
		"a large number that is not whole":          {queue("a", "spec: {quota: {pods: 1152921504606846m}}"), "spec.quota: Invalid value: the amount is not a whole number, and the resource is counted in whole numbers: pods", false},
		"quota above the limit":                     {queue("a", "spec: {quota: {cpu: 8}, limits: {cpu: 4}}"), "spec: Invalid value: the quota is above the limit of the resource, or of all products of it: cpu; raise the limit or lower the quota", false},
		"quota in another unit above the limit":     {queue("a", "spec: {quota: {memory: 1Ti}, limits: {memory: 1000Gi}}"), "spec: Invalid value: the quota is above the limit of the resource, or of all products of it: memory; raise the limit or lower the quota", false},
		"quota of a product above its limit":        {queue("a", `spec: {quota: {"nvidia.com/gpu:H100": 4}, limits: {"nvidia.com/gpu:H100": 3}}`), "spec: Invalid value: the quota is above the limit of the resource, or of all products of it: nvidia.com/gpu:H100; raise the limit or lower the quota", false},
		"quota of a product above the limit of all": {queue("a", `spec: {quota: {"nvidia.com/gpu:H100": 4}, limits: {nvidia.com/gpu: 3}}`), "spec: Invalid value: the quota is above the limit of the resource, or of all products of it: nvidia.com/gpu:H100; raise the limit or lower the quota", false},
		"product of no devices":                     {queue("a", `spec: {overQuotaWeight: {"memory:H100": 2}}`), "spec.overQuotaWeight: Invalid value: only devices have products, and a product follows the colon: memory:H100; write a name such as nvidia.com/gpu:NVIDIA-L4, or leave the colon out", false},
		"no product after the colon":                {queue("a", `spec: {quota: {"nvidia.com/gpu:": 2}}`), "spec.quota: Invalid value: only devices have products, and a product follows the colon: nvidia.com/gpu:; write a name such as nvidia.com/gpu:NVIDIA-L4, or leave the colon out", false},
		"name that cannot be printed":               {queue("a", `spec: {quota: {"cpu\t": 2}}`), "spec.quota: Invalid value: a resource has characters in its name that cannot be printed; leave them out", false},
		"run time of 0":                             {queue("a", "spec: {minRunTime: {beforePreempt: 0s}}"), "spec.minRunTime.beforePreempt: want a time above 0, such as 10m; if it is left out, the value of the queue above applies", false},
		"negative run time":                         {queue("a", "spec: {minRunTime: {beforeReclaim: -1h}}"), `spec.minRunTime.beforeReclaim: spec.minRunTime.beforeReclaim in body should match '^\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$'`, false},
		"run time without a unit":                   {queue("a", "spec: {minRunTime: {beforeReclaim: 10}}"), `spec.minRunTime.beforeReclaim: spec.minRunTime.beforeReclaim in body must be of type string: "integer"`, false},
		"run time as text without a unit":           {queue("a", `spec: {minRunTime: {beforeReclaim: "10"}}`), `spec.minRunTime.beforeReclaim: spec.minRunTime.beforeReclaim in body should match '^\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$'`, false},
		"run time too long":                         {queue("a", "spec: {minRunTime: {beforeReclaim: 9999999h}}"), "spec.minRunTime.beforeReclaim: type conversion error from 'string' to 'google.protobuf.Duration' evaluating rule: want a time above 0, such as 10m; if it is left out, the value of the queue above applies", false},
		"unknown field":                             {queue("a", "spec: {quotas: {cpu: 1}}"), `Queue in version "v1alpha1" cannot be handled as a Queue: strict decoding error: unknown field "spec.quotas"`, false},
		"quota as a list":                           {queue("a", "spec: {quota: [cpu]}"), `spec.quota: spec.quota in body must be of type object: "array"`, false},
		"name of the queue":                         {queue("Team_A", ""), `metadata.name: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`, false},
		"two dots in the name":                      {queue("a..b", ""), `metadata.name: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`, true},
		"decimal number without quotes":             {queue("a", "spec: {quota: {cpu: 1.5}}"), `spec.quota.cpu: spec.quota.cpu in body must be of type integer,string: "number"; <nil>: "spec.quota.cpu" must validate at least one schema (anyOf); spec.quota.cpu: spec.quota.cpu in body must be of type integer: "number"; <nil>: Checked value must be of type integer (default format) in spec.quota.cpu`, true},
		"many resources":                            {queue("a", "spec: {overQuotaWeight: "+many(65, "r%d: 1")+"}"), "spec.overQuotaWeight: Too many: 65: must have at most 64 items", true},
		"long run time text":                        {queue("a", "spec: {minRunTime: {beforeReclaim: "+strings.Repeat("1h", 33)+"}}"), "spec.minRunTime.beforeReclaim: Too long: may not be more than 64 bytes", true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.create(t.Context(), crdtest.Object(t, tc.text), metav1.DryRunAll)
			if diff := cmp.Diff(tc.want, causes(err)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if problem := readerProblem(tc.text); (problem == "") != tc.accepted {
				t.Errorf("the reader of manifests: want accepted %t, have %q", tc.accepted, problem)
			}
		})
	}
}

// testAccepted creates queues that are unusual and valid, for the reader of manifests too.
func (s server) testAccepted(t *testing.T) {
	for name, fields := range map[string]string{
		"no spec":               "",
		"empty spec":            "spec:",
		"null in each field":    "spec: {parent: null, tier: null, priority: null, quota: null, weight: null, overQuotaWeight: null, limits: null, minRunTime: null}",
		"empty texts":           `spec: {parent: "", tier: ""}`,
		"spaces":                `spec: {quota: {cpu: " 8 "}}`,
		"signs":                 `spec: {quota: {cpu: "+8", memory: "-0"}}`,
		"forms of quantities":   `spec: {quota: {cpu: .5, memory: 1.5Ti}, limits: {cpu: "1e3", memory: "1e15"}}`,
		"unlimited":             "spec: {quota: {cpu: unlimited, pods: 9007000m}, limits: {cpu: 4}}",
		"zero":                  "spec: {quota: {cpu: 0}, limits: {cpu: 0}, weight: 0}",
		"the most":              "spec: {limits: {cpu: 1073741824, memory: 1Ei}, weight: 100000, priority: -2147483648}",
		"products":              `spec: {quota: {nvidia.com/gpu: 4, "nvidia.com/gpu:H100": 2}, limits: {"nvidia.com/gpu:H100": 2500m}, overQuotaWeight: {"nvidia.com/gpu:H100": 3}}`,
		"durations":             "spec: {minRunTime: {beforePreempt: 1.5h0.5m, beforeReclaim: +1ns}}",
		"a resource of no name": `spec: {quota: {"": 1}}`,
	} {
		t.Run(name, func(t *testing.T) {
			text := queue("a", fields)
			if problem := readerProblem(text); problem != "" {
				t.Errorf("the reader of manifests: %s", problem)
			}
			// The reader of manifests takes a decimal number without quotes. An API server
			// takes only a text, for every custom resource (see testRejected).
			u := crdtest.Object(t, strings.ReplaceAll(text, "cpu: .5", `cpu: ".5"`))
			if _, err := s.create(t.Context(), u, metav1.DryRunAll); err != nil {
				t.Error(err)
			}
		})
	}
}

// testStatus writes the status of a queue. Only the subresource changes it.
func (s server) testStatus(t *testing.T) {
	const status = `
status:
  usage: [{from: "2026-01-01T00:00:00Z", to: "2026-01-01T01:00:00Z", resources: {cpu: 500m}}]
  observedGeneration: 1
  quota: {nvidia.com/gpu: unlimited, cpu: 8}
  share: {nvidia.com/gpu: "6"}
  allocated: {nvidia.com/gpu: 2500m}
  pending: {nvidia.com/gpu: "8"}
  pendingJobs: 3
  conditions: [{type: Active, status: "True", reason: QueueActive, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]`
	created, err := s.create(t.Context(), crdtest.Object(t, queue("with-status", "spec: {tier: Guaranteed}"+status)))
	if err != nil {
		t.Fatal(err)
	}
	if _, found := created.Object["status"]; found {
		t.Error("the status of a new queue was not dropped")
	}
	change := crdtest.Object(t, queue("with-status", "spec: {tier: Scavenger}"+status))
	change.SetResourceVersion(created.GetResourceVersion())
	updated, err := s.UpdateStatus(t.Context(), change, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatal(err)
	}
	got := crdtest.Queue(t, updated)
	if diff := cmp.Diff(crdtest.Queue(t, change).Status, got.Status); diff != "" {
		t.Errorf("the status (-want +got):\n%s", diff)
	}
	if got.Spec.Tier != string(cluster.TierGuaranteed) || updated.GetGeneration() != 1 {
		t.Errorf("an update of the status changed the spec: tier %s, generation %d", got.Spec.Tier, updated.GetGeneration())
	}
	want := []string{
		"Name|Parent|Tier|Priority|GPU quota|GPU share|GPU used|Pending|Active|Age",
		"with-status|<nil>|Guaranteed|0|unlimited|6|2500m|3|True",
	}
	if diff := cmp.Diff(want, s.table(t)); diff != "" {
		t.Errorf("the table (-want +got):\n%s", diff)
	}
	data, err := updated.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if problem := readerProblem(string(data) + "\n"); problem != "" {
		t.Errorf("the reader of manifests does not read the object of the API server: %s", problem)
	}
	for name, tc := range map[string]struct{ status, want string }{
		"backwards":       {`usage: [{from: "2026-01-01T01:00:00Z", to: "2026-01-01T00:00:00Z"}]`, "status.usage[0]: Invalid value: the interval ends before it begins, or when it begins; swap from and to, or leave the entry out"},
		"no end":          {`usage: [{from: "2026-01-01T01:00:00Z"}]`, "status.usage[0].to: Required value"},
		"too early":       {`usage: [{from: "1850-01-01T00:00:00Z", to: "2026-01-01T00:00:00Z"}]`, "status.usage[0]: Invalid value: want times from 1970 to 2200, after 1970-01-01T00:00:00Z"},
		"negative usage":  {`usage: [{from: "2026-01-01T01:00:00Z", to: "2026-01-01T02:00:00Z", resources: {cpu: -1}}]`, "status.usage[0].resources[cpu]: Invalid value: -1: the amount is negative"},
		"no quantity":     {`share: {cpu: "1e9"}`, "status.share.cpu: share.cpu in body should match '^(unlimited|[0-9]+([numkMGTPE]|[KMGTPE]i)?)$'"},
		"negative count":  {"pendingJobs: -1", "status.pendingJobs: Invalid value: -1: pendingJobs in body should be greater than or equal to 0"},
		"condition twice": {`conditions: [{type: A, status: "True", reason: R, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}, {type: A, status: "True", reason: R, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]`, `status.conditions[1]: Duplicate value: {"type":"A"}`},
	} {
		t.Run(name, func(t *testing.T) {
			u := crdtest.Object(t, queue("with-status", "status: {"+tc.status+"}"))
			u.SetResourceVersion(updated.GetResourceVersion())
			_, err := s.UpdateStatus(t.Context(), u, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
			if diff := cmp.Diff(tc.want, causes(err)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
