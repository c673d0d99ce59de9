package explain

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/berth-project/berth/internal/wire"
	"github.com/google/go-cmp/cmp"
)

func TestShorten(t *testing.T) {
	tests := map[string]struct {
		width int
		names Names
	}{
		"short names stay":   {10, Names{"a": "a", "node-1": "node-1"}},
		"the end is alike":   {12, Names{"gpu-1.eu.example.com": "gpu-1…", "gpu-12.eu.example.com": "gpu-12…"}},
		"both are alike":     {14, Names{"production-gpu-worker-007.example.com": "productio…007…", "production-gpu-worker-017.example.com": "productio…017…"}},
		"the middle differs": {16, Names{"cluster-a-eu-node-0001-of-the-rack": "cluster-a…", "cluster-b-eu-node-0001-of-the-rack": "cluster-b…"}},
		"one long name":      {9, Names{"a": "a", "abcdefghijklmnop": "abcd…mnop"}},
		"the beginning differs": {11, Names{
			"alpha-very-long-name-of-a-node": "alpha…", "beta-very-long-name-of-a-node": "beta…",
		}},
		"not enough room": {3, Names{"aaaa1xxxx1bbbb": "aaaa1xxxx1bbbb", "aaaa2xxxx1bbbb": "aaaa2xxxx1bbbb", "aaaa1xxxx2bbbb": "aaaa1xxxx2bbbb", "aaaa2xxxx2bbbb": "aaaa2xxxx2bbbb"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var names []string
			for n := range tt.names {
				names = append(names, n)
			}
			slices.Sort(names)
			if d := cmp.Diff(tt.names, Shorten(names, tt.width)); d != "" {
				t.Error(d)
			}
		})
	}
}

// Names that differ anywhere never have the same text, and nearly all of them fit.
func TestShortenedNamesDiffer(t *testing.T) {
	var names []string
	for i := range 4000 {
		names = append(names, fmt.Sprintf("k8s-%s-gpu-pool-%02d-node-%04d-%s.internal.example.com", []string{"eu", "us"}[i%2], i%7, i, strings.Repeat("x", i%3)))
	}
	seen := map[string]string{}
	short := Shorten(names, 26)
	for _, n := range names {
		text := short[n]
		if o, twice := seen[text]; twice {
			t.Errorf("%s and %s are both written %s", n, o, text)
		}
		if seen[text] = n; utf8.RuneCountInString(text) > 26 {
			t.Errorf("%s is written %s, which is too long", n, text)
		}
	}
}

func TestNaturalOrder(t *testing.T) {
	identity := func(s *string) string { return *s }
	got := NaturalOrder([]string{"job/b-10", "job/b-9", "job/a", "model/m-0", "model/m-1", "model/m-10", "model/m-2", "job/b-1"}, identity)
	want := []string{"job/b-9", "job/b-10", "job/a", "model/m-0", "model/m-1", "model/m-2", "model/m-10", "job/b-1"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	names := []string{"a", "a-1", "a-01", "a-2-b", "a-10", "a10", "b", "a2", "a-2", ""}
	slices.SortFunc(names, CompareNatural)
	if d := cmp.Diff([]string{"", "a", "a-01", "a-1", "a-2", "a-2-b", "a-10", "a2", "a10", "b"}, names); d != "" {
		t.Error(d)
	}
}

func TestListIsInNaturalOrder(t *testing.T) {
	names := []string{"gpu-0", "gpu-1", "gpu-10", "gpu-11", "gpu-2", "other"}
	for most, want := range map[int]string{3: "gpu-0, gpu-1, gpu-2 and 3 more", 6: "gpu-0, gpu-1, gpu-2, gpu-10, gpu-11 and other"} {
		if got := List(names, most); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if names[2] != "gpu-10" {
		t.Error("the list of the caller has changed")
	}
	if got := listInOrder(names[2:5], 2); got != "gpu-10, gpu-11 and 1 more" {
		t.Error(got)
	}
}

// TestReplicasByRank checks that only replicas of equal rank are sorted by name.
func TestReplicasByRank(t *testing.T) {
	r := &wire.Ranking{Replicas: []wire.Replica{{Workload: "m-12", Score: 3}, {Workload: "m-10", Score: 2}, {Workload: "m-2", Score: 2}, {Workload: "m-1", Score: 2, Retired: true}, {Workload: "m-0", Score: 1, Retired: true}}}
	var got []string
	for _, x := range ReplicasByRank(r) {
		got = append(got, x.Workload)
	}
	if d := cmp.Diff([]string{"m-12", "m-2", "m-10", "m-1", "m-0"}, got); d != "" {
		t.Error(d)
	}
}
