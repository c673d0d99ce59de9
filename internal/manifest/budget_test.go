package manifest

import (
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/google/go-cmp/cmp"
)

func budget(spec string) string { return object("DisruptionBudget", "b", "spec: "+spec) }

func coreBudget(spec string) string {
	return "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b}\nspec: " + spec
}

func TestBudgetErrors(t *testing.T) {
	const sel = "selector: {matchLabels: {app: web}}, "
	tests := map[string]struct{ text, want string }{
		"fine":                 {budget("{" + sel + "minAvailable: 2}"), ""},
		"percentage":           {budget("{" + sel + "maxUnavailable: 30%}"), ""},
		"nothing said":         {budget("{}"), "4:7: spec: say minAvailable or maxUnavailable, such as 2 or 30%\n4:7: spec.selector: say which jobs: matchLabels or matchExpressions"},
		"both":                 {budget("{" + sel + "minAvailable: 2, maxUnavailable: 1}"), "4:78: spec.maxUnavailable: minAvailable and maxUnavailable both say how many may be missing; keep one"},
		"negative":             {budget("{" + sel + "minAvailable: -2}"), "4:59: spec.minAvailable: want a number of tasks from 0 to 2000000, have -2"},
		"too large":            {budget("{" + sel + "minAvailable: 3000000}"), "4:59: spec.minAvailable: want a number of tasks from 0 to 2000000, have 3000000"},
		"much too large":       {budget("{" + sel + "minAvailable: 3000000000}"), "4:59: spec.minAvailable: 3000000000 is too large: the most is 2147483647"},
		"a number in quotes":   {budget("{" + sel + "minAvailable: '2'}"), `4:59: spec.minAvailable: want a number of tasks such as 2, or a percentage from 0% to 100%, have "2"`},
		"more than all":        {budget("{" + sel + "minAvailable: 101%}"), `4:59: spec.minAvailable: want a number of tasks such as 2, or a percentage from 0% to 100%, have "101%"`},
		"less than none":       {budget("{" + sel + "maxUnavailable: -1%}"), `4:61: spec.maxUnavailable: want a number of tasks such as 2, or a percentage from 0% to 100%, have "-1%"`},
		"part of a task":       {budget("{" + sel + "minAvailable: 1.5}"), "4:59: spec.minAvailable: want a whole number or a percentage such as 30%, have the number 1.5"},
		"a list":               {budget("{" + sel + "minAvailable: [1]}"), "4:59: spec.minAvailable: want a whole number or a percentage such as 30%, have a list"},
		"label":                {budget("{selector: {matchLabels: {a b: c}}, minAvailable: 1}"), `4:38: spec.selector.matchLabels["a b"]: "a b" is not a valid label key: write name or domain/name`},
		"operator":             {budget("{selector: {matchExpressions: [{key: a, operator: Inn, values: [b]}]}, minAvailable: 1}"), `4:57: spec.selector.matchExpressions[0].operator: unknown value "Inn"; did you mean In?`},
		"a typo":               {budget("{" + sel + "minAvailabel: 1}"), `4:45: spec: unknown field "minAvailabel"; did you mean "minAvailable"?`},
		"no name":              {"apiVersion: berth.dev/v1alpha1\nkind: DisruptionBudget\nspec: {" + sel + "minAvailable: 1}", "1:1: metadata.name: a budget needs a name"},
		"twice":                {budget("{"+sel+"minAvailable: 1}") + "\n---\n" + budget("{"+sel+"minAvailable: 1}"), "8:18: metadata.name: budget/b is already declared at 1; rename or remove one"},
		"of Kubernetes":        {coreBudget("{selector: {}, minAvailable: 1, unhealthyPodEvictionPolicy: AlwaysAllow}"), ""},
		"Kubernetes, both":     {coreBudget("{minAvailable: 1, maxUnavailable: 1}"), "4:41: spec.maxUnavailable: minAvailable and maxUnavailable both say how many may be missing; keep one"},
		"Kubernetes, text":     {coreBudget("{minAvailable: most}"), `4:22: spec.minAvailable: want a number of tasks such as 2, or a percentage from 0% to 100%, have "most"`},
		"Kubernetes, operator": {coreBudget("{selector: {matchExpressions: [{key: a, operator: Near}]}}"), `4:57: spec.selector.matchExpressions[0].operator: unknown value "Near"; write In, NotIn, Exists, DoesNotExist, Gt or Lt`},
		"old version":          {strings.Replace(coreBudget("{}"), "policy/v1", "policy/v1beta1", 1), `1:13: apiVersion: unknown apiVersion "policy/v1beta1"; write apiVersion: policy/v1`},
		"wrong version":        {strings.Replace(coreBudget("{}"), "policy/v1", "v1", 1), `1:13: apiVersion: unknown apiVersion "v1"; write apiVersion: policy/v1`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, strings.ReplaceAll(problems(tc.text), "at f:1;", "at 1;")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestBudgets(t *testing.T) {
	web := cluster.Term{{Key: "app", Operator: cluster.In, Values: []string{"web"}}}
	anything := cluster.Term{{Operator: cluster.DoesNotExist}}
	tests := map[string]struct {
		text string
		want cluster.Budget
	}{
		"least":            {budget("{selector: {matchLabels: {app: web}}, minAvailable: 2}"), cluster.Budget{Name: "b", Selector: web, Bound: 2}},
		"most":             {budget("{selector: {matchLabels: {app: web}}, maxUnavailable: 25%}"), cluster.Budget{Name: "b", Selector: web, Bound: 25, Percent: true, Unavailable: true}},
		"of Kubernetes":    {coreBudget("{selector: {matchLabels: {app: web}}, maxUnavailable: 1}"), cluster.Budget{Name: "b", Namespace: "default", Selector: web, Bound: 1, Unavailable: true}},
		"of all workloads": {coreBudget("{selector: {}, minAvailable: 100%}"), cluster.Budget{Name: "b", Namespace: "default", Selector: anything, Bound: 100, Percent: true}},
		"of no workload":   {coreBudget("{minAvailable: 1}"), cluster.Budget{Name: "b", Namespace: "default", Bound: 1}},
		"of no bound":      {coreBudget("{selector: {}}"), cluster.Budget{Name: "b", Namespace: "default", Selector: anything}},
		"bare items":       {"apiVersion: policy/v1\nkind: PodDisruptionBudgetList\nitems: [{metadata: {name: b, namespace: ml}, spec: {minAvailable: 1}}]", cluster.Budget{Name: "b", Namespace: "ml", Bound: 1}},
		"in a list of all": {"apiVersion: v1\nkind: List\nitems: [{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b}, spec: {minAvailable: 1}}]", cluster.Budget{Name: "b", Namespace: "default", Bound: 1}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b, err := Parse("f", []byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			s, err := b.State()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]*cluster.Budget{&tc.want}, s.View().Budgets()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestBudgetNotes(t *testing.T) {
	text := budget("{selector: {matchLabels: {app: wbe}}, minAvailable: 2}") + "\n---\n" + coreBudget("{selector: {}, minAvailable: 1}") +
		"\n---\n" + object("Job", "j", "spec: {tasks: [{name: w}]}")
	b, err := Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.State(); err != nil {
		t.Fatal(err)
	}
	want := []string{"1 disruption budget with a selector that matches no workload in the same namespace: budget/b"}
	if diff := cmp.Diff(want, b.Notes); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestStarted(t *testing.T) {
	at := func(status string) string {
		return node("{resources: {cpu: 8}}") + "\n---\n" + job("{tasks: [{name: w, replicas: 2}]}") + "\nstatus: {placements: [{task: w-0, node: n, started: " + status + "}]}"
	}
	for name, tc := range map[string]struct {
		text, want string
		started    int64
	}{
		"fine":     {at(`"2026-01-02T03:04:05Z"`), "", 1767323045000000000},
		"no time":  {at("yesterday"), `10:53: status.placements[0].started: want a time such as 2026-01-02T15:04:05Z, have "yesterday"`, 0},
		"too long": {at(`"0900-01-02T03:04:05Z"`), "10:53: status.placements[0].started: want a time from 1970 to 2200, have 0900-01-02T03:04:05Z", 0},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, problems(tc.text)); diff != "" {
				t.Fatalf("(-want +got)\n%s", diff)
			}
			if tc.want != "" {
				return
			}
			b, err := Parse("f", []byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			s, err := b.State()
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Job("job/j").Tasks()[0].Started; got != tc.started {
				t.Errorf("started at %d", got)
			}
		})
	}
	b, err := Parse("f", []byte(coreNode+pod("", "{nodeName: n}")+"\nstatus: {startTime: \"2026-01-02T03:04:05Z\"}"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.State()
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Job("pod/default/p").Tasks()[0].Started; got != 1767323045000000000 {
		t.Errorf("the pod started at %d", got)
	}
}
