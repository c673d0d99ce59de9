package command

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version and Commit are the version and the Git commit of a release. The linker sets
// them; see hack/dist/dist.sh.
var (
	Version string
	Commit  string
)

func (p *program) version() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of berth, its commit, and the Go version and platform",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(p.stdout, versionLine())
			return err
		},
	}
}

// versionLine returns what the command version and the flag --version print.
func versionLine() string {
	version, commit := Version, Commit
	if info, ok := debug.ReadBuildInfo(); ok {
		version, commit = fromBuild(info, version, commit)
	}
	return fmt.Sprintf("berth %s %s%s %s/%s\n", version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// fromBuild completes the version and the commit with what the Go command recorded in the
// binary. The commit is empty or ends with a space.
func fromBuild(info *debug.BuildInfo, version, commit string) (string, string) {
	if version == "" {
		version = info.Main.Version
	}
	if version == "" {
		version = "(devel)"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && commit == "" {
			commit = s.Value
		}
	}
	if commit != "" {
		commit = "commit " + commit[:min(12, len(commit))] + " "
	}
	return version, commit
}
