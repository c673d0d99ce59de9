package fairshare

import (
	"testing"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/fairshare"
	"github.com/google/go-cmp/cmp"
)

const hour = int64(3600e9)

func TestSettings(t *testing.T) {
	past := func(d fairshare.Decay) fairshare.Settings { return fairshare.Settings{Decay: d} }
	tests := map[string]struct {
		want fairshare.Settings
		err  string
	}{
		`{}`:                                     {},
		`{"halfLife": "24h"}`:                    {want: past(fairshare.Decay{HalfLife: 24 * hour, Weight: 1000})},
		`{"halfLife": "90m", "pastWeight": 2.5}`: {want: past(fairshare.Decay{HalfLife: hour * 3 / 2, Weight: 2500})},
		`{"halfLife": "90m", "pastWeight": 0}`:   {want: past(fairshare.Decay{HalfLife: hour * 3 / 2})},
		`{"pastWeight": 2}`:                      {err: "pastWeight is how strongly past use counts, and needs halfLife; add one such as 24h"},
		`{"halfLife": "1h", "pastWeight": 11}`:   {err: "pastWeight 11 is not from 0 to 10"},
		`{"halfLife": "1h", "pastWeight": -1}`:   {err: "pastWeight -1 is not from 0 to 10"},
		`{"halfLife": "0s"}`:                     {err: `halfLife "0s" is not a duration from 1s to 100000h; write one such as 24h, or leave it out and past use does not count`},
		`{"halfLife": "1d"}`:                     {err: `halfLife "1d" is not a duration from 1s to 100000h; write one such as 24h, or leave it out and past use does not count`},
		`{"divide": ["cpu", "memory"]}`:          {want: fairshare.Settings{Divide: []string{"cpu", "memory"}}},
		`{"divide": [""]}`:                       {err: "divide lists a resource without a name; write one such as cpu"},
		`{"halfLive": "1h"}`:                     {err: `json: unknown field "halfLive"`},
	}
	for text, tc := range tests {
		got, err := ReadSettings(enginetest.Arguments(text))
		message := ""
		if err != nil {
			message = err.Error()
		}
		if message != tc.err {
			t.Errorf("%s: want error %q, have %q", text, tc.err, message)
		} else if d := cmp.Diff(tc.want, got); err == nil && d != "" {
			t.Errorf("%s (-want +got):\n%s", text, d)
		}
	}
}

// The age of past use is counted from the time of the session.
func TestPastInASession(t *testing.T) {
	p, err := New(enginetest.Arguments(`{"halfLife": "10h"}`))
	if err != nil {
		t.Fatal(err)
	}
	state := enginetest.State(enginetest.Node("n").CPU(0, "0").GPUs(6, "A100", "80Gi"),
		enginetest.Queue("a").Past(90*hour, 100*hour, gpu, 6000), enginetest.Queue("b"), job("a", 6, ""), job("b", 6, ""))
	for now, want := range map[int64]int64{100: 2000, 110: 2571, 0: 3000, 1000: 3000} {
		s := enginetest.Engine(p).Open(state, engine.Options{Now: now * hour})
		if got := p.(*plugin).shares().ByName["a"].Shares[0].Share(); got != want {
			t.Errorf("at %d hours a has %d, want %d", now, got, want)
		}
		s.Close()
	}
}
