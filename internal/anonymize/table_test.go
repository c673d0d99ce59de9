package anonymize

import (
	"cmp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func sealed(t table, names ...string) *table {
	for _, name := range names {
		t.of(name)
	}
	t.seal()
	return &t
}

func TestAliases(t *testing.T) {
	isDefault := func(s string) bool { return s == "default" }
	tests := map[string]struct {
		table       table
		names, want string
	}{
		"sorted":                       {table{stem: "node"}, "b a c", "node-0002 node-0001 node-0003"},
		"a name that is kept":          {table{stem: "queue", keep: isDefault}, "zoo default acme", "queue-0002 default a-queue-0001"},
		"a name that begins another":   {table{stem: "node", nest: true}, "a a-b a-c ab", "node-0001 node-0001-x1 node-0001-x2 node-0002"},
		"numbers after a name":         {table{stem: "node", nest: true}, "a a-10 a-2 a-2b", "node-0001 node-0001-10 node-0001-2 node-0001-2x1"},
		"below a name that is nested":  {table{stem: "node", nest: true}, "a a-b a-b.c-d", "node-0001 node-0001-x1 node-0001-x1.x1"},
		"numbers that are kept":        {table{stem: "value", keep: isKnownValue}, "1 2 1a 10 x 1-b", "1 2 10z-0002 10 value-0003 1-value-0001"},
		"between words that are kept":  {table{stem: "task", nest: true, keep: isLeadingRole}, "leader worker driver lender", "leader task-0003 a-task-0001 task-0002"},
		"between close words":          {table{stem: "task", nest: true, keep: isLeadingRole}, "launcher leader lb", "launcher leader launcherz-0001"},
		"not nested, since not wanted": {table{stem: "cell"}, "a a-b", "cell-0001 cell-0002"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			names := strings.Fields(tt.names)
			a := sealed(tt.table, names...)
			var got []string
			for _, name := range names {
				got = append(got, a.of(name))
			}
			if have := strings.Join(got, " "); have != tt.want {
				t.Errorf("aliases of %s:\nwant %s\nhave %s", tt.names, tt.want, have)
			}
		})
	}
}

// TestOrder checks that aliases have the order of names, also where a number or another name
// follows them.
func TestOrder(t *testing.T) {
	name := rapid.StringMatching(`[ab01]([ab01.-]{0,4}[ab01])?`)
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(name, 2, 12).Draw(t, "names")
		a := sealed(table{stem: "node", nest: true}, names...)
		ends := []string{"", "/0"}
		for i := range 12 {
			ends = append(ends, "-"+strconv.Itoa(i), "-"+strconv.Itoa(i)+"/node-1")
		}
		for _, x := range names {
			for _, y := range names {
				for _, e := range ends {
					for _, f := range ends {
						if want, have := cmp.Compare(x+e, y+f), cmp.Compare(a.of(x)+e, a.of(y)+f); want != have {
							t.Fatalf("%s and %s compare as %d, and %s and %s as %d", x+e, y+f, want, a.of(x)+e, a.of(y)+f, have)
						}
					}
				}
			}
		}
	})
}
