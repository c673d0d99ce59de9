// Command kubectl-berth is a plugin of kubectl: it answers questions about the workloads of a
// Kubernetes cluster with the words of the command berth.
package main

import (
	"os"

	"github.com/berth-project/berth/kube/command"
	"github.com/berth-project/berth/plugins/standard"
)

func main() {
	os.Exit(command.Kubectl(standard.Registry(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
