// Command berth-controller runs Models on Kubernetes: it chooses their node groups and forms,
// makes Deployments and LeaderWorkerSets for them, and answers admission requests about them.
package main

import (
	"os"

	"github.com/berth-project/berth/kube/command"
	"github.com/berth-project/berth/plugins/standard"
)

func main() { os.Exit(command.Controller(standard.Registry(), os.Args[1:], os.Stderr)) }
