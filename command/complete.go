package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate/instance"
	"github.com/berth-project/berth/internal/estimate/preset"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/spf13/cobra"
)

// The completion of a shell reads the paths that are on the command line before the cursor. It
// offers nothing if they cannot be read, because a message would disturb the command line.

// completion is what cobra calls to complete an argument or the value of a flag.
type completion = func(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective)

// completeFlag lets the shell complete the value of a flag.
func completeFlag(c *cobra.Command, flag string, f completion) {
	if err := c.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the command has no such flag: a mistake in the code
	}
}

// readState returns State of the paths, or nil if they cannot be read.
func readState(paths []string) *cluster.State {
	if len(paths) == 0 || slices.Contains(paths, "-") {
		return nil
	}
	b, err := manifest.LoadFrom(strings.NewReader(""), paths)
	if err != nil {
		return nil
	}
	state, err := b.State()
	if err != nil {
		return nil
	}
	return state
}

// manifestsHere returns the files of the working directory that may be manifests. Directories
// below it are not read. It returns nil if there are too many files to read while a user waits.
func manifestsHere() []string {
	const mostFiles, mostBytes = 100, 16 << 20
	var out []string
	size := int64(0)
	for _, pattern := range []string{"*.yaml", "*.yml", "*.json"} {
		files, _ := filepath.Glob(pattern) // the only error is a bad pattern
		for _, f := range files {
			if info, err := os.Stat(f); err == nil && info.Mode().IsRegular() && !strings.HasPrefix(f, ".") {
				out, size = append(out, f), size+info.Size()
			}
		}
	}
	if len(out) > mostFiles || size > mostBytes {
		return nil
	}
	return out
}

// completeWorkload completes the first argument of why. At this time the paths are not on the
// command line yet, so the workloads are those of the working directory. Further arguments are
// paths.
func completeWorkload(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	state := readState(manifestsHere())
	if state == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return starting(word, workloads(state)), cobra.ShellCompDirectiveNoFileComp
}

// workloads returns the IDs of all jobs and models.
func workloads(state *cluster.State) []string {
	out := slices.Clone(state.View().Sets().Names())
	for _, j := range state.Jobs() {
		out = append(out, j.ID)
	}
	return out
}

// completeRemoved completes the value of --remove: a node or a workload.
func completeRemoved(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	state := readState(args)
	if state == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return starting(word, append(nodeNames(state), workloads(state)...)), cobra.ShellCompDirectiveNoFileComp
}

// completeGroup completes the value of --add-nodes up to the "=": a node group or a node.
func completeGroup(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	state := readState(args)
	if state == nil {
		return nil, directive
	}
	names := nodeNames(state)
	for _, g := range state.View().Groups() {
		for _, name := range []string{g.Key.Product, strings.ReplaceAll(explain.GroupName(g.Key), " × ", " x ")} {
			if _, err := findTemplate(state, name); err == nil && name != "" {
				names = append(names, name)
				break
			}
		}
	}
	for i := range names {
		names[i] += "="
	}
	return starting(word, names), directive
}

// completeObject completes the value of --set up to the first ".": an object.
func completeObject(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	state := readState(args)
	if state == nil {
		return nil, directive
	}
	var names []string
	for _, id := range workloads(state) {
		if j := state.Job(id); j == nil || j.Set.Name == "" { // a replica is set by its model
			names = append(names, id+".")
		}
	}
	for _, q := range state.Queues() {
		names = append(names, "queue/"+q.Name+".")
	}
	for _, n := range nodeNames(state) {
		names = append(names, "node/"+n+".")
	}
	return starting(word, names), directive
}

// completeModel completes the argument of estimate: a preset, or a file if no preset matches.
func completeModel(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, p := range preset.All() {
		names = append(names, p.Name)
	}
	return starting(word, names), cobra.ShellCompDirectiveDefault
}

// completeProduct completes the product of --gpu.
func completeProduct(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, d := range instance.Devices() {
		names = append(names, d.Product)
	}
	return starting(word, names), cobra.ShellCompDirectiveNoFileComp
}

// starting returns the names that begin with the word, without duplicates, in natural order.
func starting(word string, names []string) []string {
	out := slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, word) })
	slices.SortFunc(out, explain.CompareNatural)
	return slices.Compact(out)
}

// completePending completes the value of --for: a pending job.
func completePending(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	state := readState(args)
	if state == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, j := range state.Pending() {
		names = append(names, j.ID)
	}
	return starting(word, names), cobra.ShellCompDirectiveNoFileComp
}
