package team_test

import (
	"testing"

	"example.com/my-berth/team"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

func TestTeamNodes(t *testing.T) {
	vision, free := enginetest.Node("a-vision").Label("team", "vision"), enginetest.Node("free")
	tests := map[string]struct {
		parts []enginetest.Part
		want  string // the node, or the reason
	}{
		"its own node":   {[]enginetest.Part{vision, free, enginetest.Job("j").Namespace("vision")}, "a-vision"},
		"another team":   {[]enginetest.Part{vision, free, enginetest.Job("j").Namespace("speech")}, "free"},
		"nothing for it": {[]enginetest.Part{vision, enginetest.Job("j").Namespace("speech")}, "NodeOfAnotherTeam"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			plugin, err := team.New(enginetest.Arguments(`{}`))
			if err != nil {
				t.Fatal(err)
			}
			out, err := enginetest.Engine(plugin).Open(enginetest.State(tt.parts...), engine.Options{Search: engine.Twin}).Run()
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if len(out.Refusals) > 0 {
				got = string(out.Refusals[0].Reason)
			} else {
				got = out.Decisions[0].Node
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
