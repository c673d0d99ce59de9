package command

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
	"github.com/spf13/cobra"
)

func (p *program) plugins() *cobra.Command {
	return &cobra.Command{
		Use:   "plugins",
		Short: "List the plugins, in the default profile's order",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			profile := standard.Profile()
			reasons := map[string][]string{}
			for _, r := range standard.Reasons() {
				reasons[r.Plugin] = append(reasons[r.Plugin], string(r.Reason))
			}
			rows := [][]string{{"PLUGIN", "WEIGHT", "REASONS IT GIVES"}}
			for _, c := range profile {
				weight := "-"
				if c.Weight > 0 {
					weight = strconv.FormatInt(c.Weight, 10)
				}
				rows = append(rows, []string{c.Name, weight, dash(strings.Join(reasons[c.Name], ", "))})
			}
			for _, name := range p.registry.Names() {
				if !slices.ContainsFunc(profile, func(c engine.PluginConfig) bool { return c.Name == name }) {
					rows = append(rows, []string{name, "-", "not in the default profile"})
				}
			}
			grid(p.stdout, rows)
			return nil
		},
	}
}

// Version is set by the build of a release.
var Version = ""

func (p *program) version() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := Version
			if info, ok := debug.ReadBuildInfo(); v == "" && ok {
				v = info.Main.Version
			}
			if v == "" {
				v = "(devel)"
			}
			_, err := fmt.Fprintf(p.stdout, "berth %s %s %s/%s\n", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
