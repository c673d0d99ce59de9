package command

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
	"github.com/spf13/cobra"
)

func (p *program) plugins() *cobra.Command {
	return &cobra.Command{
		Use:   "plugins [NAME]",
		Short: "List the plugins in the order of the default profile, or the arguments of one plugin",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return p.arguments(args[0])
			}
			profile := standard.Profile()
			reasons := map[string][]string{}
			for _, r := range standard.Reasons() {
				reasons[r.Plugin] = append(reasons[r.Plugin], string(r.Reason))
			}
			rows := [][]string{{"PLUGIN", "WEIGHT", "REASONS"}}
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
			grid(p.stdout, wrapLast(rows, columns()))
			return nil
		},
	}
}

// arguments prints the arguments of a plugin, with their defaults.
func (p *program) arguments(plugin string) error {
	list, err := p.registry.Arguments(plugin)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		fmt.Fprintf(p.stdout, "%s has no arguments.\n", plugin)
		return nil
	}
	rows := [][]string{{"ARGUMENT", "TYPE", "DEFAULT"}}
	for _, a := range list {
		rows = append(rows, []string{a.Name, a.Type, dash(a.Default)})
	}
	grid(p.stdout, wrapLast(rows, columns()))
	return nil
}
