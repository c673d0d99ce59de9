// This program is the berth command with the plugin TeamNodes.
package main

import (
	"log"
	"os"

	"example.com/my-berth/team"

	"github.com/berth-project/berth/command"
	"github.com/berth-project/berth/plugins/standard"
)

func main() {
	registry := standard.Registry() // the plugins that are included in Berth
	if err := registry.RegisterPluginBuilder(team.Name, team.New); err != nil {
		log.Fatal(err)
	}
	os.Exit(command.Main(registry, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
