// Command berth decides which GPUs AI workloads run on, and explains why. Its only
// input is files: manifests, or a dump of a live cluster.
package main

import (
	"os"

	"github.com/berth-project/berth/command"
	"github.com/berth-project/berth/plugins/standard"
)

func main() {
	os.Exit(command.Main(standard.Registry(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
