// This program is the berth command with one more plugin, QuietRacks.
package main

import (
	"fmt"
	"io"
	"os"

	"example.com/berth-quietracks/quietracks"

	"github.com/berth-project/berth/command"
	"github.com/berth-project/berth/plugins/standard"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	registry := standard.Registry()
	if err := registry.RegisterPluginBuilder(quietracks.Name, quietracks.New); err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	return command.Main(registry, args, os.Stdin, stdout, stderr)
}
