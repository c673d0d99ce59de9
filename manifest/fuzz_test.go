package manifest

import (
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"
)

// FuzzParse: no file makes reading panic or hang; what can be read makes books,
// or errors that say what is wrong.
func FuzzParse(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range seeds {
		data, err := os.ReadFile(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, text := range []string{
		"", "---\n---", "# only\n", "\x00", "\xff\xfe", "[[[[", "a: &a [*a]", "<<: *x", "{? [a] : b}",
		job("{tasks: [{name: w, replicas: 3, devices: {share: 0.5}}]}"),
		job("{cells: [a, b], placement: {unit: Node, nodesPerReplica: 2}, tasks: [{name: w, devices: {totalMemory: 1e3}}]}"),
		node("{resources: {cpu: 1e30, memory: -1}, devices: {product: x, count: 3, memory: 1Gi, sharing: {strategy: mps, replicas: 3}}}"),
		node("{devices: [{product: x, count: 1, memory: 9Gi, partitions: [{profile: 1g.5gb, memory: 5Gi}]}]}"),
		coreNode + pod("", "{nodeName: n, containers: [{resources: {requests: {nvidia.com/gpu: 1}}}]}"),
		"a: &a {x: 1}\nb: {<<: [*a, *a], x: !!int q}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := Parse("f", data)
		if err == nil {
			_, err = b.State()
		}
		if err != nil && (err.Error() == "" || !utf8.ValidString(err.Error())) {
			t.Errorf("an error nobody can read: %q", err)
		}
	})
}
