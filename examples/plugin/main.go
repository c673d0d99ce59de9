// Berth with one more plugin: everything the berth command does, and QuietRacks.
package main

import (
	"fmt"
	"os"

	"example.com/berth-quietracks/quietracks"

	"github.com/berth-project/berth/cmd/berth/command"
	"github.com/berth-project/berth/plugins/standard"
)

func main() {
	registry := standard.Registry()
	if err := registry.RegisterPluginBuilder(quietracks.Name, quietracks.New); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(command.Main(registry, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
