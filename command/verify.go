package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/scenario"
	"github.com/spf13/cobra"
)

func (p *program) verify() *cobra.Command {
	return &cobra.Command{
		Use:   "verify PATH...",
		Short: "Check that scenario files come out as they say",
		Long: `Checks that scenario files come out as they say. Each file holds a cluster,
what is asked of it and, in a Scenario, what should come of it. Every scenario
also checks the index against a plain scan, unless it is too large for that.`,
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
	var broken []error // a file that cannot be judged does not keep the others from it
	for _, name := range files {
		ok, err := p.verifyFile(name)
		switch {
		case err != nil:
			broken = append(broken, err)
		case ok:
			passed++
		default:
			failed++
		}
	}
	fmt.Fprintf(p.stdout, "%d passed, %d failed", passed, failed)
	if len(broken) > 0 {
		fmt.Fprintf(p.stdout, ", %d could not be judged\n", len(broken))
		return errors.Join(broken...)
	}
	fmt.Fprintln(p.stdout)
	if failed > 0 {
		return errNo
	}
	return nil
}

// verifyFile says how the file's scenario failed, and reports whether it did not.
func (p *program) verifyFile(name string) (bool, error) {
	b, err := manifest.LoadFrom(p.stdin, []string{name})
	if err != nil {
		return false, err
	}
	if b.Scenario() == nil {
		return false, fmt.Errorf("%s:1: there is no Scenario in it: nothing says what should come out", name)
	}
	if thorough, err := scenario.Thorough(b); err != nil {
		return false, err
	} else if !thorough {
		fmt.Fprintf(p.stderr, "note: %s is too large to be checked against a plain scan, too; it is decided with the index alone\n", name)
	}
	mismatches, err := scenario.Run(p.registry, b)
	if err != nil {
		// The input was read; what is wrong is the profile or the engine.
		return false, fmt.Errorf("%s: %w", b.Where(b.Scenario()), err)
	}
	if len(mismatches) == 0 {
		return true, nil
	}
	fmt.Fprintf(p.stdout, "FAIL %s: %s\n", name, b.Scenario().Name)
	for _, m := range mismatches {
		fmt.Fprintf(p.stdout, "  %s\n    - %s\n    + %s\n", m.What, oneLine(m.Want), oneLine(m.Got))
	}
	return false, nil
}

func oneLine(s string) string { return strings.ReplaceAll(s, "\n", " ") }
