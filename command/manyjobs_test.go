package command

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-project/berth/plugins/standard"
)

// TestManyJobsOnOneNode checks that a simulation of many jobs on one node takes a number of steps
// that grows with the number of jobs, and not with its square. The steps that are counted are
// calls of hooks, and allocations of the whole command.
func TestManyJobsOnOneNode(t *testing.T) {
	const node = "apiVersion: berth.dev/v1alpha1\nkind: Node\nmetadata: {name: n}\nspec: {resources: {cpu: 100000, memory: 100Ti}, devices: {product: L4, count: 8, memory: 24Gi}}\n"
	for name, spec := range map[string]func(i int) string{
		"too few devices": func(int) string { return "spec: {tasks: [{name: w, devices: {count: 1}}]}" },
		"all placed":      func(int) string { return "spec: {tasks: [{name: w, resources: {cpu: 1, memory: 1Gi}}]}" },
		"all different": func(i int) string {
			return fmt.Sprintf("spec: {tasks: [{name: w, resources: {cpu: 1, memory: %dMi}}]}", i+1)
		},
		"priorities": func(i int) string {
			return fmt.Sprintf("spec: {priority: %d, tasks: [{name: w, devices: {count: 1}}]}", i)
		},
		"preemption": func(i int) string {
			text := fmt.Sprintf("spec: {priority: %d, preemptible: true, tasks: [{name: w, devices: {count: 1}}]}", i)
			if i < 8 {
				text += fmt.Sprintf("\nstatus: {placements: [{task: w-0, node: n, devices: [%d]}]}", i)
			}
			return text
		},
		"queues": func(i int) string {
			return fmt.Sprintf("spec: {queue: q%d, tasks: [{name: w, devices: {count: 1}}]}\n---\napiVersion: berth.dev/v1alpha1\nkind: Queue\nmetadata: {name: q%d}\nspec: {}", i, i)
		},
		"gangs": func(int) string { return "spec: {tasks: [{name: w, replicas: 3, resources: {cpu: 1, memory: 1Gi}}]}" },
	} {
		t.Run(name, func(t *testing.T) {
			measure := func(n int) (calls int, allocations float64) {
				var in strings.Builder
				in.WriteString(node)
				for i := range n {
					fmt.Fprintf(&in, "---\napiVersion: berth.dev/v1alpha1\nkind: Job\nmetadata: {name: j%d}\n%s\n", i, spec(i))
				}
				var errs bytes.Buffer
				allocations = testing.AllocsPerRun(1, func() {
					errs.Reset()
					if code := Main(standard.Registry(), []string{"simulate", "-", "--timings"}, strings.NewReader(in.String()), io.Discard, &errs); code != exitOK {
						t.Fatal(errs.String())
					}
				})
				for _, line := range strings.Split(errs.String(), "\n")[1:] {
					if f := strings.Fields(line); len(f) == 5 {
						n, err := strconv.Atoi(f[2])
						if err != nil {
							t.Fatal(err)
						}
						calls += n
					}
				}
				return calls, allocations
			}
			calls, allocations := measure(500)
			moreCalls, moreAllocations := measure(1000)
			if calls < 500 || moreCalls > calls*5/2 {
				t.Errorf("%d calls of hooks for 500 jobs, and %d for 1000", calls, moreCalls)
			}
			if moreAllocations > allocations*5/2 {
				t.Errorf("%.0f allocations for 500 jobs, and %.0f for 1000", allocations, moreAllocations)
			}
		})
	}
}
