package library

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	hf "github.com/berth-project/berth/internal/estimate/hf/sample"
	"github.com/berth-project/berth/internal/estimate/preset"
)

// heavier is by how many thousandths the weights of a preset exceed what a server loads.
// The assumptions of the preset say why.
var heavier = map[string]int64{"falcon-7b": 42, "falcon-40b": 12, "deepseek-v3": 23, "gpt-oss-20b": 1000, "gpt-oss-120b": 1000}

// TestPresetsAgreeWithTheirFiles reads models as they are published, and compares the
// architecture and the weights with those of the preset of the same name.
func TestPresetsAgreeWithTheirFiles(t *testing.T) {
	compared := 0
	for _, name := range hf.Names() {
		p, err := preset.Find(name)
		if err != nil {
			continue // some samples are not presets
		}
		dir := t.TempDir()
		if err := hf.WriteIndex(dir, name); err != nil {
			t.Fatal(err)
		}
		m, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		compared++
		if diff := cmp.Diff(*m.Architecture, p.Architecture); diff != "" {
			t.Errorf("%s: its files (-) and the preset (+) differ:\n%s", name, diff)
		}
		off := 1000*int64(p.Weights-m.Weights.Total())/int64(m.Weights.Total()) - heavier[name]
		if off < -2 || off > 2 || (heavier[name] > 0) != (len(p.Assumed) > 0) {
			t.Errorf("%s: its files weigh %d, the preset says %d", name, m.Weights.Total(), p.Weights)
		}
	}
	if compared < 12 {
		t.Errorf("only %d presets were compared", compared)
	}
}
