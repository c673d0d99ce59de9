package standard

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/engine"
)

func TestMergeArrangesPlugins(t *testing.T) {
	base := engine.Profile{{Name: "LabelFilter"}, {Name: "TaintToleration"}, {Name: "IsolationFilter"}, {Name: "NodeResourcesFit"}}
	at := func(name string, side Side, of string) Override {
		return Override{Name: name, Place: Place{side, of}, Where: "c.yaml:" + strings.ToLower(name[:1])}
	}
	tests := map[string]struct {
		overrides []Override
		replace   bool
		want      string // names, or an error
	}{
		"no place":  {[]Override{{Name: "Mine"}}, false, "LabelFilter TaintToleration IsolationFilter NodeResourcesFit Mine"},
		"first":     {[]Override{at("Mine", First, "")}, false, "Mine LabelFilter TaintToleration IsolationFilter NodeResourcesFit"},
		"two first": {[]Override{at("Mine", First, ""), at("Yours", First, "")}, false, "Mine Yours LabelFilter TaintToleration IsolationFilter NodeResourcesFit"},
		"two last":  {[]Override{at("LabelFilter", Last, ""), {Name: "Mine"}, at("Yours", Last, "")}, false, "TaintToleration IsolationFilter NodeResourcesFit Mine LabelFilter Yours"},
		"before":    {[]Override{at("Mine", Before, "NodeResourcesFit")}, false, "LabelFilter TaintToleration IsolationFilter Mine NodeResourcesFit"},
		"after":     {[]Override{at("Mine", After, "LabelFilter")}, false, "LabelFilter Mine TaintToleration IsolationFilter NodeResourcesFit"},
		"beside one that moves": {
			[]Override{at("Mine", After, "Yours"), at("Yours", Before, "LabelFilter"), at("LabelFilter", Last, "")}, false,
			"TaintToleration IsolationFilter NodeResourcesFit Yours Mine LabelFilter",
		},
		"two at one place keep their order": {
			[]Override{at("A", After, "LabelFilter"), at("B", Before, "TaintToleration"), at("C", After, "LabelFilter"), at("D", Before, "TaintToleration")}, false,
			"LabelFilter A C B D TaintToleration IsolationFilter NodeResourcesFit",
		},
		"one of the default profile": {[]Override{at("NodeResourcesFit", Before, "LabelFilter")}, false, "NodeResourcesFit LabelFilter TaintToleration IsolationFilter"},
		"replaced": {
			[]Override{{Name: "NodeResourcesFit"}, {Name: "IsolationFilter"}, at("Mine", First, ""), at("LabelFilter", Before, "IsolationFilter")}, true,
			"Mine NodeResourcesFit LabelFilter IsolationFilter",
		},

		"no such plugin":       {[]Override{at("Mine", Before, "LabelFiltre")}, false, `c.yaml:m: plugin Mine: its place is before LabelFiltre, which is not in the profile; did you mean "LabelFilter"?`},
		"a disabled one":       {[]Override{{Name: "LabelFilter", Disabled: true}, at("Mine", After, "LabelFilter")}, false, "c.yaml:m: plugin Mine: its place is after LabelFilter, which is not in the profile; known: TaintToleration, IsolationFilter, NodeResourcesFit, Mine"},
		"one that is replaced": {[]Override{{Name: "NodeResourcesFit"}, {Name: "IsolationFilter"}, at("Mine", After, "LabelFilter")}, true, "c.yaml:m: plugin Mine: its place is after LabelFilter, which is not in the profile; known: NodeResourcesFit, IsolationFilter, Mine"},
		"itself":               {[]Override{at("Mine", After, "Mine")}, false, "c.yaml:m: plugin Mine: its place is after Mine, which is the plugin itself; name another one"},
		"a circle":             {[]Override{at("Mine", After, "Yours"), at("Yours", Before, "Mine")}, false, "c.yaml:m: plugin Mine: the places depend on each other: Mine after Yours, Yours before Mine; remove one of them"},
		"beside a circle": {
			[]Override{at("Extra", After, "C"), at("A", After, "B"), at("B", Before, "C"), at("C", After, "A")}, false,
			"c.yaml:a: plugin A: the places depend on each other: A after B, B before C, C after A; remove one of them",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := Merge(base, tt.overrides, tt.replace)
			got := strings.Join(names(p), " ")
			if err != nil {
				got = err.Error()
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("merged (-want +got):\n%s", d)
			}
		})
	}
}
