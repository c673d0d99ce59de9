// Command berth-scheduler schedules pods of a Kubernetes cluster.
package main

import (
	"os"

	"github.com/berth-project/berth/kube/command"
	"github.com/berth-project/berth/plugins/standard"
)

func main() {
	os.Exit(command.Main(standard.Registry(), os.Args[1:], os.Stderr))
}
