package soak

import (
	"errors"
	"hash/fnv"
	"testing"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/plugins/standard"
)

// severalProfiles returns profiles that differ in weights, arguments, order and the plugins
// that they have.
func severalProfiles(t *testing.T) []engine.NamedProfile {
	t.Helper()
	merge := func(overrides ...standard.Override) engine.Profile {
		p, err := standard.Merge(standard.ProfileFor(overrides), overrides, false)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	heavy := int64(7)
	return []engine.NamedProfile{
		{Name: "standard", Plugins: merge()},
		{Name: "spread", Plugins: merge(
			standard.Override{Name: "NodeResourcesFitPlus", Arguments: enginetest.Arguments(`{"resources": {"cpu": {"type": "Spread", "weight": 1}}}`)},
			standard.Override{Name: "PlacementScorer", Weight: &heavy},
			standard.Override{Name: "TaintToleration", Place: standard.Place{Side: standard.First}},
			standard.Override{Name: "DeviceOrder", Disabled: true},
		)},
		{Name: "plain", Plugins: merge(
			standard.Override{Name: "ScarceResourceAvoidance", Disabled: true},
			standard.Override{Name: "AffinityScorer", Disabled: true},
			standard.Override{Name: "StatusScorer", Weight: &heavy},
			standard.Override{Name: "TenantAdmission", Place: standard.Place{Side: standard.Last}},
		)},
	}
}

// TestInvariantsWithProfiles runs sequences in which jobs name different profiles, and some
// jobs have tasks of several profiles.
func TestInvariantsWithProfiles(t *testing.T) {
	t.Parallel()
	profiles := severalProfiles(t)
	assign := func(owner string, task int) string {
		h := fnv.New32a()
		h.Write([]byte(owner))
		n := int(h.Sum32() % 32)
		if n >= 28 {
			n += task
		}
		return []string{"standard", "spread", "plain", "", "unknown"}[n%5]
	}
	var total Counts
	for seed := uint64(1001); seed <= 1020; seed++ {
		counts, failure := Sequence{Seed: seed, Steps: 200, Profiles: profiles, Assign: assign}.Run()
		if failure != nil {
			t.Fatal(failure.Shrink())
		}
		total.Add(counts)
	}
	t.Log(total)
	if total.Decisions < 400 || total.Moves < 5 || total.Evictions < 15 {
		t.Errorf("too little happened: %v", total)
	}
}

// digestWithoutParameters returns the digest of the State without what plugins have learnt, because
// those of the other profiles learn too.
func digestWithoutParameters(s *scheduler) (string, error) {
	snapshot := s.state.Snapshot()
	snapshot.Learnt = nil
	state, err := snapshot.State()
	if err != nil {
		return "", err
	}
	return state.Digest(), nil
}

// TestOneOfSeveralProfiles checks that an engine of several profiles decides about jobs that all
// name one profile as an engine with this profile alone: the same steps lead to the same State.
func TestOneOfSeveralProfiles(t *testing.T) {
	t.Parallel()
	profiles := severalProfiles(t)
	decided := 0
	for i, profile := range profiles {
		for seed := uint64(1); seed <= 2; seed++ {
			var digests []string
			alone := Sequence{
				Seed: seed, Steps: 150, Profiles: profiles[i : i+1], Assign: func(string, int) string { return profile.Name },
				after: func(s *scheduler) error {
					d, err := digestWithoutParameters(s)
					digests = append(digests, d)
					return err
				},
			}
			several, at := alone, 0
			several.Profiles = profiles
			several.after = func(s *scheduler) error {
				d, err := digestWithoutParameters(s)
				if err != nil {
					return err
				}
				if at++; d != digests[at-1] {
					return errors.New("with other profiles, other decisions were made")
				}
				return nil
			}
			want, failure := alone.Run()
			if failure != nil {
				t.Fatalf("profile %s alone: %v", profile.Name, failure)
			}
			got, failure := several.Run()
			if failure != nil {
				t.Fatalf("profile %s: %v", profile.Name, failure)
			}
			// What other profiles learn is a change too, after which some jobs are tried again.
			got.Changes, got.Refusals, got.Untried = want.Changes, want.Refusals, want.Untried
			if got != want {
				t.Errorf("profile %s, seed %d: %v with other profiles, and %v without", profile.Name, seed, got, want)
			}
			decided += got.Decisions
		}
	}
	if decided < 100 {
		t.Errorf("only %d decisions were made", decided)
	}
}
