package command

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-project/berth/plugins/standard"
)

// numbered matches a name that ends with a number.
var numbered = regexp.MustCompile(`([a-z]+(?:/[a-z]+)?-)(\d+)\b`)

// checkNatural fails if a name with a higher number is directly before one with a lower number, in
// a list in a sentence, or at the beginning of two lines. It returns how many pairs it compared.
func checkNatural(t *testing.T, text string) int {
	t.Helper()
	compared := 0
	compare := func(a, b []string, where string) {
		if a == nil || b == nil || a[1] != b[1] {
			return
		}
		compared++
		x, _ := strconv.Atoi(a[2])
		y, _ := strconv.Atoi(b[2])
		if x > y {
			t.Errorf("%s is before %s: %s", a[0], b[0], where)
		}
	}
	lines := strings.Split(text, "\n")
	for i := range lines[1:] {
		a, b := numbered.FindStringIndex(lines[i]), numbered.FindStringIndex(lines[i+1])
		if a != nil && b != nil && lines[i][:a[0]] == lines[i+1][:b[0]] { // such as at the same time
			compare(numbered.FindStringSubmatch(lines[i]), numbered.FindStringSubmatch(lines[i+1]), lines[i]+" | "+lines[i+1])
		}
	}
	all := strings.Join(strings.Fields(text), " ")
	at := numbered.FindAllStringSubmatchIndex(all, -1)
	for i := 1; i < len(at); i++ {
		if between := all[at[i-1][1]:at[i][0]]; between == ", " || between == " and " {
			compare(numbered.FindStringSubmatch(all[at[i-1][0]:]), numbered.FindStringSubmatch(all[at[i][0]:]), all[at[i-1][0]:at[i][1]])
		}
	}
	return compared
}

// TestNaturalOrderEverywhere checks that 10 comes after 2 in the answers of all commands.
func TestNaturalOrderEverywhere(t *testing.T) {
	const head = "apiVersion: berth.dev/v1alpha1\nkind: "
	var in strings.Builder
	for i := 1; i <= 12; i++ {
		fmt.Fprintf(&in, head+"Node\nmetadata: {name: gpu-%d, labels: {rack: r-%d}}\nspec: {resources: {cpu: 8, memory: 64Gi}, devices: {product: L4, count: 2, memory: 24Gi}}\n---\n", i, i)
		fmt.Fprintf(&in, head+"Queue\nmetadata: {name: team-%d}\nspec: {parent: all}\n---\n", i)
		fmt.Fprintf(&in, head+"Job\nmetadata: {name: run-%d, creationTimestamp: 2026-01-01T00:00:00Z}\nspec: {queue: team-%d, preemptible: true, runTime: 10m, tasks: [{name: w, devices: {count: 1}}]}\nstatus: {placements: [{task: w-0, node: gpu-%d, devices: [0]}]}\n---\n", i, i, i)
	}
	for i := 1; i <= 30; i++ {
		fmt.Fprintf(&in, head+"Job\nmetadata: {name: wait-%d, creationTimestamp: 2026-01-01T00:02:00Z}\nspec: {queue: team-2, runTime: 5m, tasks: [{name: w, devices: {count: 1}}]}\n---\n", i)
	}
	in.WriteString(head + "Job\nmetadata: {name: gang}\nspec: {queue: team-2, priority: 5, topology: {required: rack}, tasks: [{name: w, replicas: 30, devices: {count: 1}}]}\n---\n")
	in.WriteString(head + "Queue\nmetadata: {name: all}\nspec: {}\n")
	compared := 0
	for _, args := range [][]string{
		{"simulate", "-"}, {"simulate", "-", "--cycles", "20"}, {"simulate", "-", "--cycles", "20", "-o", "wide"}, {"queues", "-"},
		{"why", "node/gpu-3", "-"}, {"why", "queue/all", "-"}, {"why", "queue/team-2", "-"}, {"why", "job/gang", "-"}, {"why", "job/wait-7", "-"},
		{"whatif", "-", "--remove", "gpu-2", "--remove", "gpu-11"}, {"whatif", "-", "--add-nodes", "L4=12"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := Main(standard.Registry(), args, strings.NewReader(in.String()), &out, &errs); code != exitOK {
				t.Fatal(errs.String())
			}
			compared += checkNatural(t, out.String())
		})
	}
	if compared < 200 {
		t.Errorf("only %d pairs of names were compared", compared)
	}
}
