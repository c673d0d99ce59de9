package command

import (
	"io"
	"time"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/kube/internal/ctl"
)

// Kubectl runs kubectl-berth, the plugin of kubectl, and returns the exit code. A program with
// plugins of its own passes a registry that has them, as to Main.
func Kubectl(registry *engine.Registry, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return ctl.Main(ctl.Options{
		Registry: registry, DefaultName: DefaultName, Clock: time.Now,
		Profiles: readProfiles, Names: schedulerNames,
	}, args, stdin, stdout, stderr)
}
