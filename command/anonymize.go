package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/berth-project/berth/internal/anonymize"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/sim/scenario"
	"github.com/spf13/cobra"
)

type anonymizeOptions struct {
	inputFlags
	output string // the name of a file; "" or "-" is standard output
}

func (p *program) anonymize() *cobra.Command {
	var o anonymizeOptions
	c := &cobra.Command{
		Use:   "anonymize PATH...",
		Short: "Print the same cluster with other names, for a bug report",
		Long: `Prints the same cluster as manifests in which the names of objects, labels,
taints, cells, files and sessions are replaced. Only fields that Berth reads are
printed: images, commands, variables, annotations and messages are not. Names of
products, instance types, presets and plugins, amounts, and label values that are
numbers are kept. Times are shifted alike, so that the time of the decisions
becomes 2026-01-01T00:00:00Z.

A PATH is a file, a directory, or - for standard input. A snapshot cannot be
anonymized; name the manifests that it was made from.

The command simulates the input and the output and compares their decisions and
refusals. If they differ, it prints the first difference to standard error and
exits with 1. The output is written in any case. Read it before you send it to
others.`,
		Example: "  kubectl get nodes,pods,pdb -A -o yaml | berth anonymize - -o report.yaml\n  berth anonymize examples/quickstart | berth simulate -",
		Args:    minArgs(1, "a file or directory that describes a cluster"),
		RunE:    func(_ *cobra.Command, args []string) error { return p.runAnonymize(args, o) },
	}
	c.Flags().StringVarP(&o.output, "output", "o", "", "write the manifests to this file (default: standard output)")
	o.inputFlags.addFlags(c)
	return c
}

func (p *program) runAnonymize(args []string, o anonymizeOptions) error {
	in, err := p.open(args, &o.inputFlags)
	if err != nil {
		return err
	}
	copied, err := anonymize.Of(in.bundle, in.now)
	if err != nil {
		return err
	}
	for _, note := range copied.Notes {
		p.note("%s", note)
	}
	var text bytes.Buffer
	if err := copied.Write(&text); err != nil {
		return err
	}
	if err := p.writeManifests(o.output, args, text.Bytes()); err != nil {
		return err
	}
	count, difference := p.compare(in, copied, text.Bytes())
	if difference != "" {
		fmt.Fprintln(p.stderr, "the output is not decided like the input: "+difference)
		return errNo
	}
	fmt.Fprintln(p.stderr, count)
	return nil
}

func (p *program) writeManifests(to string, inputs []string, text []byte) error {
	write := func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	}
	if to == "" || to == "-" {
		return write(p.stdout)
	}
	return writeFile("--output", to, inputs, write)
}

// compare simulates the input and its copy, of which the text is given. It returns how much
// was compared, or the first difference.
func (p *program) compare(in *input, copied *anonymize.Cluster, text []byte) (count, difference string) {
	want, err := sim.Simulate(in.engine, in.state, sim.Options{Now: in.now})
	have, copyErr := p.simulateCopy(copied, text)
	switch {
	case errors.Is(err, sim.ErrUnsettled) && errors.Is(copyErr, sim.ErrUnsettled):
		return "the decisions about the input and the output were not compared, because they never end for both", ""
	case err != nil:
		return "", "the input could not be simulated: " + err.Error()
	case copyErr != nil:
		return "", "the output could not be simulated: " + copyErr.Error()
	}
	count = fmt.Sprintf("the input and the output have the same %s and %s",
		english.Count(len(want.Decisions), "decision"), english.Count(len(want.Refusals), "refusal"))
	return count, copied.Difference(&want.Outcome, &have.Outcome)
}

// simulateCopy reads the text as a file would be read, and simulates it.
func (p *program) simulateCopy(copied *anonymize.Cluster, text []byte) (*sim.Simulation, error) {
	b, err := manifest.Parse("output", text)
	if err != nil {
		return nil, err
	}
	e, err := scenario.Engine(p.registry, b)
	if err != nil {
		return nil, err
	}
	state, err := b.State()
	if err != nil {
		return nil, err
	}
	return sim.Simulate(e, state, sim.Options{Now: copied.Now})
}
