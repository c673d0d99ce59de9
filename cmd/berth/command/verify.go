package command

import (
	"fmt"
	"strings"

	"github.com/berth-project/berth/manifest"
	"github.com/berth-project/berth/scenario"
	"github.com/spf13/cobra"
)

func (p *program) verify() *cobra.Command {
	return &cobra.Command{
		Use:   "verify PATH...",
		Short: "Check that scenario files come out as they say",
		Long: `Checks that scenario files come out as they say. Each file holds a cluster,
what is asked of it and, in a Scenario, what should come of it. Every scenario
also checks the index against a plain scan.`,
		Example: "  berth verify scenarios/",
		Args:    paths(1, "a scenario file or a directory of them"),
		RunE:    func(_ *cobra.Command, args []string) error { return p.runVerify(args) },
	}
}

func (p *program) runVerify(args []string) error {
	files, err := scenario.Files(args)
	if err != nil {
		return err
	}
	passed, failed := 0, 0
	for _, name := range files {
		b, err := manifest.Load([]string{name})
		if err != nil {
			return err
		}
		if b.Scenario() == nil {
			return fmt.Errorf("%s:1: there is no Scenario in it: nothing says what should come out", name)
		}
		mismatches, err := scenario.Run(p.registry, b)
		if err != nil {
			// The input was read; what is wrong is the profile or the engine.
			return fmt.Errorf("%s: %w", b.Where(b.Scenario()), err)
		}
		if len(mismatches) == 0 {
			passed++
			continue
		}
		failed++
		fmt.Fprintf(p.stdout, "FAIL %s: %s\n", name, b.Scenario().Name)
		for _, m := range mismatches {
			fmt.Fprintf(p.stdout, "  %s\n    - %s\n    + %s\n", m.What, oneLine(m.Want), oneLine(m.Got))
		}
	}
	fmt.Fprintf(p.stdout, "%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		return errNo
	}
	return nil
}

func oneLine(s string) string { return strings.ReplaceAll(s, "\n", " ") }
