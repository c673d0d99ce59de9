package standard

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

func TestMerge(t *testing.T) {
	weight := func(w int64) *int64 { return &w }
	few, many := enginetest.Arguments(`{"few": 1}`), enginetest.Arguments(`{"many": 2}`)
	base := engine.Profile{
		{Name: "LabelFilter"},
		{Name: "IsolationFilter"},
		{Name: "NodeResourcesFit"},
		{Name: "spot-instance-manager", Weight: 10, Arguments: few},
	}
	type result struct {
		Profile engine.Profile
		Error   string
	}
	tests := map[string]struct {
		overrides []Override
		replace   bool
		want      result
	}{
		"no override": {nil, false, result{Profile: base}},
		"changed in its place": {
			[]Override{{Name: "LabelFilter", Arguments: many, Where: "c.yaml:3"}}, false,
			result{Profile: engine.Profile{{Name: "LabelFilter", Arguments: many, Where: "c.yaml:3"}, base[1], base[2], base[3]}},
		},
		"weight alone keeps the arguments": {
			[]Override{{Name: "spot-instance-manager", Weight: weight(3)}}, false,
			result{Profile: engine.Profile{base[0], base[1], base[2], {Name: "spot-instance-manager", Weight: 3, Arguments: few}}},
		},
		"arguments alone keep the weight": {
			[]Override{{Name: "spot-instance-manager", Arguments: many}}, false,
			result{Profile: engine.Profile{base[0], base[1], base[2], {Name: "spot-instance-manager", Weight: 10, Arguments: many}}},
		},
		"added at the end": {
			[]Override{{Name: "Mine", Weight: weight(2), Where: "c.yaml:5"}, {Name: "Yours"}}, false,
			result{Profile: engine.Profile{base[0], base[1], base[2], base[3], {Name: "Mine", Weight: 2, Where: "c.yaml:5"}, {Name: "Yours"}}},
		},
		"disabled": {
			[]Override{{Name: "LabelFilter", Disabled: true}}, false,
			result{Profile: engine.Profile{base[1], base[2], base[3]}},
		},
		"replaced, in its own order": {
			[]Override{{Name: "NodeResourcesFit"}, {Name: "spot-instance-manager"}, {Name: "Mine"}, {Name: "IsolationFilter"}}, true,
			result{Profile: engine.Profile{base[2], base[3], {Name: "Mine"}, base[1]}},
		},
		"replaced, one of them disabled": {
			[]Override{{Name: "NodeResourcesFit"}, {Name: "LabelFilter", Disabled: true}, {Name: "IsolationFilter"}}, true,
			result{Profile: engine.Profile{base[2], base[1]}},
		},

		"twice": {
			[]Override{{Name: "Mine", Where: "c.yaml:5"}, {Name: "Mine", Where: "c.yaml:9"}}, false,
			result{Error: "c.yaml:9: plugin Mine: it is already set at c.yaml:5, and only one of the two can apply; merge them into one entry"},
		},
		"twice, without locations": {
			[]Override{{Name: "Mine"}, {Name: "Mine"}}, false,
			result{Error: "plugins[1]: plugin Mine: it is already set at plugins[0], and only one of the two can apply; merge them into one entry"},
		},
		"no weight": {
			[]Override{{Name: "LabelFilter", Weight: weight(0), Where: "c.yaml:5"}}, false,
			result{Error: "c.yaml:5: plugin LabelFilter: weight 0 is not between 1 and 100000; to make its scores not count, disable the plugin, which also disables its filters"},
		},
		"too much weight": {
			[]Override{{Name: "LabelFilter", Weight: weight(100_001)}}, false,
			result{Error: "plugins[0]: plugin LabelFilter: weight 100001 is not between 1 and 100000; to make its scores not count, disable the plugin, which also disables its filters"},
		},
		"room disabled": {
			[]Override{{Name: "NodeResourcesFit", Disabled: true, Where: "c.yaml:5"}}, false,
			result{Error: "c.yaml:5: plugin NodeResourcesFit: it cannot be disabled: without it two tasks could be given the same room; remove the entry"},
		},
		"isolation disabled": {
			[]Override{{Name: "IsolationFilter", Disabled: true}}, false,
			result{Error: "plugins[0]: plugin IsolationFilter: it cannot be disabled: without it a task could be placed where the isolation that it requests is not provided; remove the entry"},
		},
		"isolation left out": {
			[]Override{{Name: "NodeResourcesFit"}}, true,
			result{Error: "plugin IsolationFilter is missing from a profile that replaces the default one: without it a task could be placed where the isolation that it requests is not provided; add it"},
		},
		"a typo disabled": {
			[]Override{{Name: "LabelFiltre", Disabled: true, Where: "c.yaml:5"}}, false,
			result{Error: `c.yaml:5: plugin LabelFiltre: it is not in the profile, so there is nothing to disable; did you mean "LabelFilter"?`},
		},
	}
	before := append(engine.Profile(nil), base...)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got result
			p, err := Merge(base, tt.overrides, tt.replace)
			got.Profile = p
			if err != nil {
				got.Error = err.Error()
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("merged (-want +got):\n%s", d)
			}
			if d := cmp.Diff(before, base); d != "" {
				t.Errorf("the base changed (-before +after):\n%s", d)
			}
		})
	}
}

// Merge keeps unknown names, and engine.New reports them with a suggestion.
func TestMergeLeavesUnknownNamesToTheEngine(t *testing.T) {
	p, err := Merge(Profile(), []Override{{Name: "LabelFiltre", Where: "c.yaml:5"}}, false)
	if err != nil {
		t.Fatal(err)
	}
	_, err = engine.New(Registry(), p)
	if err == nil {
		t.Fatal("an unknown plugin was accepted")
	}
	if d := cmp.Diff(`c.yaml:5: plugin LabelFiltre: no such plugin; did you mean "LabelFilter"?`, err.Error()); d != "" {
		t.Errorf("error (-want +got):\n%s", d)
	}
}
