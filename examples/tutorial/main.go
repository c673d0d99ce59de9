// This program is the berth command with the plugins of this module.
package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"example.com/my-berth/keep"
	"example.com/my-berth/licenses"
	"example.com/my-berth/lostwork"
	"example.com/my-berth/namespaces"
	"example.com/my-berth/team"

	"github.com/berth-project/berth/command"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var tasks map[string]int // how many tasks each namespace has after the last session
	registry := standard.Registry()
	for _, p := range []struct {
		name  string
		build engine.PluginBuilder
	}{
		{namespaces.Name, namespaces.Builder(func(latest map[string]int) { tasks = latest })},
		{keep.Name, keep.New},
		{team.Name, team.New},
		{lostwork.Name, lostwork.New},
		{licenses.Name, licenses.Builder(nil)}, // the berth command calls no observers, so no report is needed
	} {
		if err := registry.RegisterPluginBuilder(p.name, p.build); err != nil {
			fmt.Fprintln(stderr, err)
			return 2
		}
	}
	code := command.Main(registry, args, stdin, stdout, stderr)
	if len(args) > 0 && args[0] == "simulate" {
		for _, name := range slices.Sorted(maps.Keys(tasks)) {
			fmt.Fprintf(stderr, "namespace %s: %d tasks\n", name, tasks[name])
		}
	}
	return code
}
