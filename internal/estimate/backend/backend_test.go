package backend

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
)

func find(t *testing.T, name string) *Backend {
	t.Helper()
	b, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestFind(t *testing.T) {
	for name, want := range map[string]string{"vllm": "vllm", "vLLM": "vllm", "llama.cpp": "llamacpp", "SGLang": "sglang"} {
		if b := find(t, name); b.Name != want {
			t.Errorf("%s is %s", name, b.Name)
		}
	}
	tests := map[string]string{
		"vlm":    `no backend is called "vlm"; did you mean "vllm"?`,
		"triton": `no backend is called "triton"; known: vllm, sglang, mindie, voxbox, llamacpp, custom`,
	}
	for name, want := range tests {
		if _, err := Find(name); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestTypesByVersion(t *testing.T) {
	tests := map[string]struct {
		backend, version string
		want             []string
	}{
		"the newest":                       {"sglang", "", []string{"cuda", "rocm", "cann"}},
		"too old for cann":                 {"sglang", "0.4.9", []string{"cuda", "rocm"}},
		"post-release":                     {"sglang", "0.5.1.post3", []string{"cuda", "rocm", "cann"}},
		"pre-release":                      {"vllm", "0.9.1rc1", []string{"cuda", "rocm", "corex", "dtk", "musa", "neuware", "hpu"}},
		"first release with cann and maca": {"vllm", "v0.9.1", []string{"cuda", "rocm", "cann", "corex", "dtk", "maca", "musa", "neuware", "hpu"}},
		"mindie":                           {"mindie", "2.1.RC2", []string{"cann"}},
		"voxbox":                           {"voxbox", "", []string{"cuda", "cpu"}},
		"every type":                       {"llamacpp", "b4567", AllTypes()},
		"no check":                         {"custom", "", AllTypes()},
	}
	for name, tt := range tests {
		got, err := find(t, tt.backend).Types(tt.version)
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

func TestRunsOn(t *testing.T) {
	if ok, err := find(t, "sglang").RunsOn("0.4.0", "cann"); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	if ok, err := find(t, "sglang").RunsOn("0.5.2", "cann"); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	tests := map[string]struct{ version, on, want string }{
		"type":    {"", "cdua", `no type of device is called "cdua"; did you mean "cuda"?`},
		"version": {"latest", "cuda", `vllm: "latest" is not a version; write it as in 0.8.5, 2.1.rc2 or 0.5.1.post3`},
	}
	for name, tt := range tests {
		if _, err := find(t, "vllm").RunsOn(tt.version, tt.on); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}

func TestVersionsAreOrdered(t *testing.T) {
	ordered := []string{"0.8.5", "0.9.0.dev1", "0.9.0rc1", "0.9.0-rc2", "v0.9", "0.9.0.post1", "0.9.1", "0.10.1", "0.10.1.1", "2.1.rc1", "2.1", "b4567"}
	for i := range ordered {
		for j := range ordered {
			a, err := parseVersion(ordered[i])
			if err != nil {
				t.Fatal(err)
			}
			b, _ := parseVersion(ordered[j])
			// dev and rc are both pre-releases, and have no order between them.
			if got := a.compare(b); strings.Contains(ordered[i], "dev") == strings.Contains(ordered[j], "dev") && sign(got) != sign(i-j) {
				t.Errorf("%s against %s: %d", ordered[i], ordered[j], got)
			}
		}
	}
	for _, bad := range []string{"latest", "1..2", "1.2.3.4.5", "-1", "1.2.x", "9999999999", "1.2rc1rc2", " 1"} {
		if _, err := parseVersion(bad); err == nil {
			t.Errorf("%q is accepted as a version", bad)
		}
	}
}

func sign(n int) int { return max(-1, min(1, n)) }

func TestBounds(t *testing.T) {
	tests := map[string]map[string]bool{
		"":              {"0.1": true},
		">=0.8.0,<0.10": {"0.7.9": false, "0.8": true, "0.9.99": true, "0.10.0": false},
		">0.8":          {"0.8": false, "0.8.post1": true},
		"<=1":           {"1.0": true, "1.0.1": false},
		"==0.8.5":       {"0.8.5": true, "0.8.5.post1": false},
	}
	for text, versions := range tests {
		b, err := parseBounds(text)
		if err != nil {
			t.Fatal(err)
		}
		for v, want := range versions {
			parsed, _ := parseVersion(v)
			if b.contains(parsed) != want {
				t.Errorf("%q contains %s: %v", text, v, !want)
			}
		}
	}
	for _, bad := range []string{"0.8", "~0.8", ">=", ">=x", ">=1,"} {
		if _, err := parseBounds(bad); err == nil {
			t.Errorf("%q is accepted as a range", bad)
		}
	}
}

func TestWithin(t *testing.T) {
	for _, tt := range []struct {
		version, versions string
		want              bool
	}{{"0.11.1", ">=0.11.1", true}, {"0.11.0", ">=0.11.1", false}, {"b9824", ">=b9824", true}, {"b9823", ">=b9824", false}, {"", ">=0.1", false}} {
		if got, err := Within(tt.version, tt.versions); got != tt.want || err != nil {
			t.Errorf("%s within %s: %v, %v", tt.version, tt.versions, got, err)
		}
	}
	for version, versions := range map[string]string{"latest": ">=1", "1": "1"} {
		if _, err := Within(version, versions); err == nil {
			t.Errorf("%s within %s is no error", version, versions)
		}
	}
}

func TestFractions(t *testing.T) {
	tests := map[string]map[int]cluster.Milli{
		"vllm":     {1: 900, 8: 900},
		"sglang":   {1: 880, 8: 880},
		"mindie":   {1: 800, 8: 800},
		"llamacpp": {1: 0}, "voxbox": {1: 0}, "custom": {1: 0},
	}
	for name, sizes := range tests {
		for tensor, want := range sizes {
			got := find(t, name).Fraction(&estimate.Model{}, estimate.Serving{Tensor: tensor}, Accelerator{})
			if got != want {
				t.Errorf("%s claims %d at %d, want %d", name, got, tensor, want)
			}
		}
	}
}

func TestStrategies(t *testing.T) {
	served := []Strategy{Device, Devices, Nodes}
	want := map[string][]Strategy{
		"vllm": served, "sglang": served, "mindie": served, "voxbox": {Device, CPU},
		"llamacpp": {Device, Devices, Nodes, Offload, CPU}, "custom": {Device, Devices, CPU},
	}
	for _, b := range All() {
		if diff := cmp.Diff(want[b.Name], b.Strategies); diff != "" {
			t.Errorf("%s:\n%s", b.Name, diff)
		}
		for _, a := range b.accelerators {
			if !slices.Contains(AllTypes(), a.name) {
				t.Errorf("%s runs on %s, which is not a type", b.Name, a.name)
			}
		}
		if b.on(&estimate.Model{}, 1, Accelerator{}).BatchTokens == 0 || b.Host == 0 || b.anyType != (len(b.accelerators) == 0) {
			t.Errorf("%+v", b)
		}
	}
}

func TestFindSpeech(t *testing.T) {
	tests := map[string]Speech{
		"Systran/faster-whisper-large-v3":        {"whisper-large-v3", 1550000000, 10 << 30, "whisper"},
		"openai/whisper-tiny":                    {"whisper-tiny", 39000000, 1 << 30, "whisper"},
		"Systran/faster-distil-whisper-large-v3": {"distil-whisper-large-v3", 756000000, 5 << 30, "size"},
		"FunAudioLLM/CosyVoice2-0.5B":            {"cosyvoice2-0.5b", 500000000, 7 << 30, "files"},
		"nari-labs/Dia-1.6B":                     {"dia-1.6b", 1600000000, 10 << 30, "card"},
	}
	for name, want := range tests {
		got, err := FindSpeech(name)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	_, err := FindSpeech("bark")
	if want := `the memory of "bark" is not in the table; set it explicitly`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if !find(t, "voxbox").FromTable() || find(t, "vllm").FromTable() {
		t.Error("only voxbox has a table")
	}
}

// Every format is one that a reader of models returns, and every size of the cache is
// one that a manifest accepts.
func TestFormats(t *testing.T) {
	for _, b := range All() {
		for _, f := range b.Formats {
			if !slices.Contains([]string{"safetensors", "preset", "gguf", "table"}, f) {
				t.Errorf("%s: no model has the format %q", b.Name, f)
			}
		}
		for _, n := range b.CacheBits {
			if n != 16 && n != 8 && n != 4 {
				t.Errorf("%s: a cache of %d bits", b.Name, n)
			}
		}
		if b.Name != "custom" && len(b.Formats) == 0 {
			t.Errorf("%s has no list of formats", b.Name)
		}
	}
}
