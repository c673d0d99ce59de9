package anonymize_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-project/berth/internal/anonymize"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/sim/scenario"
	"github.com/berth-project/berth/plugins/standard"
)

// inputs returns the scenarios, each by itself, and the directories of examples.
func inputs(t *testing.T) []string {
	t.Helper()
	files, err := scenario.Files([]string{"../../scenarios"})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []string{"models", "provision", "quickstart", "reclaim", "timeline"} {
		files = append(files, filepath.Join("../../examples", e))
	}
	return files
}

// TestScenariosDecideAlike anonymizes each scenario and example, and compares what is
// decided about it and about the copy.
func TestScenariosDecideAlike(t *testing.T) {
	done, skipped := 0, 0
	for _, name := range inputs(t) {
		b, err := manifest.Load([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		c, err := anonymize.Of(b, b.Now())
		var files *anonymize.FilesError
		if errors.As(err, &files) {
			skipped++
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		done++
		var text bytes.Buffer
		if err := c.Write(&text); err != nil {
			t.Fatal(err)
		}
		copied, err := manifest.Parse("output", text.Bytes())
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, text.String())
			continue
		}
		if at := copied.Now(); at != c.Now && !strings.Contains(strings.Join(c.Notes, " "), "--now") {
			t.Errorf("%s: the time of the output is %d, want %d", name, at, c.Now)
		}
		want, have := simulate(t, name, b, b.Now()), simulate(t, name, copied, c.Now)
		if want == nil || have == nil {
			continue
		}
		checkWords(t, name, b, text.Bytes())
		noted := strings.Contains(strings.Join(c.Notes, " "), "ResourceClaims and ResourceSlices are not part of the output")
		if d := c.Difference(&want.Outcome, &have.Outcome); d != "" && !noted {
			t.Errorf("%s: %s", name, d)
		}
	}
	if done < 400 || skipped > 60 {
		t.Errorf("%d inputs were compared and %d skipped, because they need files", done, skipped)
	}
}

func simulate(t *testing.T, name string, b *manifest.Bundle, now int64) *sim.Simulation {
	t.Helper()
	e, err := scenario.Engine(standard.Registry(), b)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return nil
	}
	state, err := b.State()
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return nil
	}
	s, err := sim.Simulate(e, state, sim.Options{Now: now, Brief: true})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return nil
	}
	return s
}
