// Command berth decides which GPUs AI workloads run on, and explains why. Its only
// input is files: manifests, or a dump of a live cluster.
package main

import (
	"os"
	"runtime/debug"

	"github.com/berth-project/berth/command"
	"github.com/berth-project/berth/plugins/standard"
)

// gcPercent is the growth of the heap between two collections. A command makes objects that it
// keeps to its end, so that frequent collections find little. The variable GOGC takes precedence.
const gcPercent = 300

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	os.Exit(command.Main(standard.Registry(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
