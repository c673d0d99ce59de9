package spotinstancemanager_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/plugins/spotinstancemanager"
)

const label = "kai.scheduler/instance-type"

// A policy is tested with a few nodes, a job, and the expected placement.
func TestPlacement(t *testing.T) {
	regular := enginetest.Node("regular").Label(label, "on-demand")
	spot := enginetest.Node("a-spot").Label(label, "spot") // first by name
	job := enginetest.Job("train")
	batch := enginetest.Job("batch").Preemptible()

	type placement struct {
		Node      string
		Score     []engine.ScorePart
		Rejection *engine.Rejection
	}
	part := func(score float64) []engine.ScorePart {
		return []engine.ScorePart{{Plugin: "spot-instance-manager", Score: score, Weight: 10}}
	}
	refused := &engine.Rejection{
		Plugin:  "spot-instance-manager",
		Reason:  "SpotNotAllowed",
		Cure:    engine.Grow | engine.Relax,
		Subject: "kai.scheduler/instance-type=spot",
	}
	tests := map[string]struct {
		arguments string
		parts     []enginetest.Part
		want      placement
	}{
		"not preemptible, both kinds of nodes":  {`{}`, []enginetest.Part{regular, spot, job}, placement{Node: "regular", Score: part(100)}},
		"not preemptible, only a spot instance": {`{}`, []enginetest.Part{spot, job}, placement{Rejection: refused}},
		"preemptible prefers regular":           {`{}`, []enginetest.Part{regular, spot, batch}, placement{Node: "regular", Score: part(100)}},
		"preemptible may use spot":              {`{}`, []enginetest.Part{spot, batch}, placement{Node: "a-spot", Score: part(0)}},
		"a node without the label is regular":   {`{}`, []enginetest.Part{enginetest.Node("plain"), job}, placement{Node: "plain", Score: part(100)}},
		"another score":                         {`{"nonSpotScore": 40}`, []enginetest.Part{regular, spot, batch}, placement{Node: "regular", Score: part(40)}},
		"no preference":                         {`{"nonSpotScore": 0}`, []enginetest.Part{regular, spot, batch}, placement{Node: "a-spot", Score: part(0)}},
		"another value":                         {`{"spotLabelValue": "preemptible"}`, []enginetest.Part{spot, job}, placement{Node: "a-spot", Score: part(100)}},
		"another label":                         {`{"spotLabelKey": "karpenter.sh/capacity-type"}`, []enginetest.Part{enginetest.Node("k").Label("karpenter.sh/capacity-type", "spot"), job}, placement{Rejection: &engine.Rejection{Plugin: "spot-instance-manager", Reason: "SpotNotAllowed", Cure: engine.Grow | engine.Relax, Subject: "karpenter.sh/capacity-type=spot"}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got placement
			out := run(t, tt.arguments, tt.parts)
			for _, d := range out.Decisions {
				got.Node, got.Score = d.Node, d.Score.Parts
			}
			for _, r := range out.Refusals {
				got.Rejection = &r.Attempts[0].Nearest[0].Rejection
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("placement (-want +got):\n%s", d)
			}
		})
	}
}

// run runs one session with this plugin alone, with its default weight.
func run(t *testing.T, arguments string, parts []enginetest.Part) engine.Outcome {
	t.Helper()
	registry := engine.NewRegistry()
	if err := registry.RegisterPluginBuilder(spotinstancemanager.Name, spotinstancemanager.New); err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(registry, engine.Profile{
		{Name: "spot-instance-manager", Weight: 10, Arguments: enginetest.Arguments(arguments)},
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := e.Open(enginetest.State(parts...), engine.Options{}).Run()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestArguments(t *testing.T) {
	const empty = `must not be empty, or nodes without the label would count as spot; leave them out to mark spot instances with kai.scheduler/instance-type=spot`
	const score = `is not between 0 and 100, as every score must be; to make it count for more, raise the plugin's weight`
	tests := map[string]struct{ arguments, want string }{
		"nothing set":       {`{}`, ""},
		"all set":           {`{"spotLabelKey": "k", "spotLabelValue": "v", "nonSpotScore": 0.5}`, ""},
		"no key":            {`{"spotLabelKey": ""}`, `spotLabelKey "" and spotLabelValue "spot" ` + empty},
		"no value":          {`{"spotLabelValue": ""}`, `spotLabelKey "kai.scheduler/instance-type" and spotLabelValue "" ` + empty},
		"a score above 100": {`{"nonSpotScore": 1000}`, `nonSpotScore 1000 ` + score},
		"a negative score":  {`{"nonSpotScore": -1}`, `nonSpotScore -1 ` + score},
		"a typo":            {`{"spotLabel": "k"}`, `json: unknown field "spotLabel"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if _, err := spotinstancemanager.New(enginetest.Arguments(tt.arguments)); err != nil {
				got = err.Error()
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("error (-want +got):\n%s", d)
			}
		})
	}
}
