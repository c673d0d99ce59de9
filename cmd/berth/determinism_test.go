package main_test

import (
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/berth-project/berth/command"
	"github.com/berth-project/berth/plugins/standard"
)

// TestSameInputSameOutput simulates one cluster a hundred times and compares the
// output byte by byte. The objects are distributed over files in random order, and
// the runs use one core and eight cores alternately.
func TestSameInputSameOutput(t *testing.T) {
	first := shuffled(t, 100, "-o", "json", "--explain")
	if n := bytes.Count(first, []byte(`"action": "Bind"`)); n < 50 {
		t.Fatalf("only %d tasks were placed, which is too few for this test", n)
	}
	if !bytes.Contains(first, []byte(`"permanent": true`)) || !bytes.Contains(first, []byte(`"permanent": false`)) {
		t.Fatal("the output must have both permanent and other refusals for this test")
	}
}

// TestSameInputSameCourse does the same with a simulation over time, printed as JSON
// and as a picture.
func TestSameInputSameCourse(t *testing.T) {
	over := []string{"--cycles", "30", "--now", "2026-01-05T10:00:00Z"}
	first := shuffled(t, 10, append(over, "-o", "json")...)
	for _, what := range []string{`"ends"`, `"arrivals"`, `"refusals"`} {
		if bytes.Count(first, []byte(what)) < 3 {
			t.Errorf("there are too few %s for this test", what)
		}
	}
	shuffled(t, 10, over...)
}

// shuffled runs simulate the given number of times, each with the objects in another
// order. It returns the output, and fails the test unless all outputs are equal.
func shuffled(t *testing.T, runs int, flags ...string) []byte {
	docs := manyObjects()
	random := rand.New(rand.NewSource(1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var first []byte
	for run := range runs {
		runtime.GOMAXPROCS([]int{1, 8}[run%2])
		random.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
		dir := t.TempDir()
		files := map[string][]string{}
		for _, d := range docs {
			name := fmt.Sprintf("%c.yaml", 'a'+random.Intn(8))
			files[name] = append(files[name], d)
		}
		var paths []string
		for name, docs := range files { // map order is one more shuffle
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(strings.Join(docs, "---\n")), 0o600); err != nil {
				t.Fatal(err)
			}
			paths = append(paths, path)
		}
		var out, errs bytes.Buffer
		args := slices.Concat([]string{"simulate"}, flags, paths)
		if code := command.Main(standard.Registry(), args, strings.NewReader(""), &out, &errs); code != 0 {
			t.Fatalf("exit code %d: %s", code, errs.String())
		}
		if first == nil {
			first = out.Bytes()
		}
		if !bytes.Equal(first, out.Bytes()) {
			t.Fatalf("run %d printed another output than run 0", run)
		}
	}
	return first
}

// manyObjects returns the manifests of a cluster with too little room for its jobs,
// which use most kinds of requests.
func manyObjects() []string {
	var docs []string
	add := func(format string, args ...any) {
		docs = append(docs, "apiVersion: berth.dev/v1alpha1\n"+fmt.Sprintf(format, args...))
	}
	for i := range 3 {
		add("kind: Queue\nmetadata: {name: q%d}\nspec: {tier: %s, limits: {nvidia.com/gpu: %d}}\n", i, []string{"Guaranteed", "Standard", "Scavenger"}[i], 40+i)
	}
	for i := range 26 {
		product := []string{"A100", "L4", "H100"}[i%3]
		add(`kind: Node
metadata: {name: n%02d, labels: {rack: r%d, zone: z%d}}
spec:
  cell: %s
  resources: {cpu: 64, memory: 512Gi}
  devices: {product: %s, count: 4, memory: %dGi}
  isolation: {cpu: [WholeCore], gpu: [DeviceExclusive]}
`, i, i/4, i%2, []string{"west", "east"}[i%2], product, 24+8*(i%3))
	}
	for i := range 40 {
		extra := []string{
			"", "preemptible: true", "cells: [east, west]", "nodeSelector: {zone: z1}", "isolation: {gpu: DeviceExclusive}",
			"affinity: {jobs: [{selector: {matchLabels: {app: a1}}, within: rack, weight: 10}]}",
			"affinity: {jobs: [{selector: {matchLabels: {app: a2}}, anti: true}]}",
			"affinity: {preferred: [{weight: 5, matchExpressions: [{key: zone, operator: In, values: [z0]}]}]}",
		}[i%8]
		devices := []string{"{count: 1}", "{share: 0.5}", "{memory: 10Gi}", "{count: 2}", "{count: 4}", "{count: 9}"}[i%6]
		add(`kind: Job
metadata: {name: j%02d, labels: {app: a%d}, creationTimestamp: "2026-01-05T10:%02d:00Z"}
spec:
  runTime: %dm
  queue: q%d
  priority: %d
  minMember: 1
  %s
  tasks:
  - {name: w, replicas: %d, resources: {cpu: 2, memory: 8Gi}, devices: %s}
`, i, i%4, i%13, 2+i%7, i%3, i%5, extra, 1+i%3, devices)
	}
	return docs
}
