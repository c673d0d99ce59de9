package command

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/berth-project/berth/plugins/standard"
)

// No line of an estimate has more than 80 columns, whatever the architecture.
func TestEstimateHas80Columns(t *testing.T) {
	files, err := filepath.Glob("../internal/estimate/hf/testdata/architectures/*.json")
	if err != nil || len(files) < 70 {
		t.Fatalf("%d sample configurations: %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		dir := filepath.Join(t.TempDir(), name)
		config, err := os.ReadFile(file)
		if err == nil {
			err = os.Mkdir(dir, 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "config.json"), config, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, total := range []int64{16e9, 600e9} {
			index := fmt.Sprintf(`{"metadata": {"total_size": %d}, "weight_map": {"w": "model-00001-of-00001.safetensors"}}`, total)
			if err := os.WriteFile(filepath.Join(dir, "model.safetensors.index.json"), []byte(index), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, flags := range [][]string{nil, {"--backend", "sglang"}, {"--gpu", "H100", "--dp", "4"}} {
				var out, errs bytes.Buffer
				if code := Main(standard.Registry(), append([]string{"estimate", dir}, flags...), strings.NewReader(""), &out, &errs); code != exitOK {
					t.Errorf("%s %q: %s", name, flags, errs.String())
				}
				for line := range strings.Lines(out.String()) {
					if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
						t.Errorf("%s of %d GB, %q: %d columns: %s", name, total/1e9, flags, n, line)
					}
				}
			}
		}
	}
}
