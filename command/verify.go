package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/printable"
	"github.com/berth-project/berth/internal/sim/scenario"
	"github.com/spf13/cobra"
)

func (p *program) verify() *cobra.Command {
	return &cobra.Command{
		Use:   "verify PATH...",
		Short: "Check that scenarios give the results that they expect",
		Long: `Runs scenario files and checks that each gives the result that it expects. A
scenario file describes a cluster, the jobs to place, and, in an object of kind
Scenario, the expected decisions and refusals. Each decision is also compared
with that of a plain scan of all nodes, unless the scenario is too large.`,
		Example: "  berth verify scenarios/",
		Args:    minArgs(1, "a scenario file or a directory of them"),
		RunE:    func(_ *cobra.Command, args []string) error { return p.runVerify(args) },
	}
}

func (p *program) runVerify(args []string) error {
	files, err := scenario.Files(args)
	if err != nil {
		return err
	}
	passed, failed, unread := 0, 0, 0
	var only error            // why the last of the files that could not be run could not
	var wrong manifest.Errors // about all of them; the remaining files are run
	p.shown = p.screen.start()
	defer p.shown.end()
	for i, name := range files {
		p.shown.set("scenario %s of %s: %s", english.Thousands(i+1), english.Thousands(len(files)), name)
		ok, err := p.verifyFile(name)
		switch {
		case err != nil:
			unread, only = unread+1, err
			wrong = append(wrong, listErrors(err)...)
		case ok:
			passed++
		default:
			failed++
		}
	}
	p.shown.end()
	fmt.Fprintf(p.stdout, "%d passed, %d failed", passed, failed)
	if unread > 0 {
		fmt.Fprintf(p.stdout, ", %d could not be run\n", unread)
		if unread == 1 {
			return only
		}
		return wrong
	}
	fmt.Fprintln(p.stdout)
	if failed > 0 {
		return errNo
	}
	return nil
}

// listErrors returns the errors of a file, so that all files together print a limited number. Each
// begins as if it were the only one.
func listErrors(err error) manifest.Errors {
	var list manifest.Errors
	if errors.As(err, &list) {
		return list
	}
	return manifest.Errors{{Message: errorPrefix + err.Error()}}
}

// verifyFile reports whether the scenario of the file passes. If it fails, it
// prints what differs.
func (p *program) verifyFile(name string) (bool, error) {
	b, err := manifest.LoadFrom(p.stdin, []string{name})
	if err != nil {
		return false, err
	}
	if b.Scenario() == nil {
		return false, fmt.Errorf("%s:1: the file has no Scenario, so there is no expected result to compare with; add an object of kind Scenario", name)
	}
	if thorough, err := scenario.SmallEnoughToCheck(b); err != nil {
		return false, err
	} else if !thorough {
		p.shown.around(func() {
			fmt.Fprintf(p.stderr, "note: %s is too large to be compared with a plain scan of all nodes; only the index is used\n", printable.Text(name))
		})
	}
	mismatches, err := scenario.Run(p.registry, b)
	if err != nil {
		// The input is valid, so the fault is in the profile or in the engine.
		return false, fmt.Errorf("%s: %w", b.Where(b.Scenario()), err)
	}
	if len(mismatches) == 0 {
		return true, nil
	}
	p.shown.end() // the terminal may be that of standard output, too
	fmt.Fprintf(p.stdout, "FAIL %s: %s\n", printable.Text(name), b.Scenario().Name)
	for _, m := range mismatches {
		fmt.Fprintf(p.stdout, "  %s\n    - %s\n    + %s\n", m.What, oneLine(m.Want), oneLine(m.Got))
	}
	return false, nil
}

func oneLine(s string) string { return strings.ReplaceAll(s, "\n", " ") }
