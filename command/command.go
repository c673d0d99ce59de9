// Package command is the berth command line, ready to be linked into a program
// with plugins of its own: register them and call Main.
package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/nearest"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The exit codes. They are API.
const (
	exitOK    = 0
	exitNo    = 1 // the answer is no: something is pending, a scenario failed
	exitInput = 2 // bad input or usage
	exitBug   = 3
)

// errNo is an answer that was printed already and is no.
var errNo = errors.New("no")

// program is what the commands share.
type program struct {
	registry *engine.Registry
	stdin    io.Reader
	stdout   io.Writer
	stderr   io.Writer
	terminal bool // a person looks at stdout
}

// Main runs the command line and returns the exit code: 0 for done, 1 if the
// answer is no, 2 for bad input or usage, 3 for a bug. Profiles may name every
// plugin of the registry.
func Main(r *engine.Registry, args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	colors := terminal(stdout)
	buffer := bufio.NewWriterSize(stdout, 1<<16)
	stderr = &textWriter{w: stderr}
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(stderr, "berth: this is a bug, please report it with the input that caused it: %v\n\n%s", p, debug.Stack())
			code = exitBug
		}
	}()
	p := &program{r, stdin, &textWriter{w: buffer, color: colors}, stderr, colors}
	root := p.root()
	root.SetArgs(args)
	err := root.Execute()
	// What was said so far is an answer only if it arrives: a full disk is an error.
	if lost := buffer.Flush(); lost != nil && (err == nil || errors.Is(err, errNo)) {
		err = fmt.Errorf("the output could not be written: %w", lost)
	}
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errNo):
		return exitNo
	case errors.Is(err, syscall.EPIPE): // whoever read it has seen enough, as head does
		return exitOK
	}
	var wrong manifest.Errors
	if errors.As(err, &wrong) { // each line begins with file and line, for editors to jump to
		fmt.Fprintln(stderr, err)
	} else {
		fmt.Fprintln(stderr, "berth: "+strings.TrimSpace(err.Error()))
	}
	return exitInput
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "berth",
		Short: "Decides which GPUs AI workloads run on, and says why",
		Long: `Berth decides which GPUs AI workloads run on, and says why.

It reads manifests (Node, Queue, Job) and dumps of live clusters
(kubectl get nodes,pods,pdb -A -o yaml), and needs no server.

It exits with 0 when done, 1 where the answer is no (something is pending and
--fail-on-pending was given, a scenario failed), and 2 for bad input or usage.`,
		Example: `  berth simulate cluster/
  berth why job/train-70b cluster/
  berth whatif cluster/ --add-nodes NVIDIA-L4=2`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: given,
	}
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(p.simulate(), p.why(), p.whatif(), p.verify(), p.queues(), p.estimate(), p.plugins(), p.version())
	return root
}

// flagError suggests the flag that was probably meant.
func flagError(c *cobra.Command, err error) error {
	message := err.Error()
	if word, ok := strings.CutPrefix(message, "unknown flag: --"); ok {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		word, _, _ = strings.Cut(word, "=")
		if near, ok := nearest.Of(word, names); ok {
			message += "; did you mean --" + near + "?"
		}
	}
	return fmt.Errorf("%s (see %s --help)", message, c.CommandPath())
}

// paths asks for at least n arguments and says what they are for.
func paths(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < n {
			return fmt.Errorf("%s needs %s\nUsage: %s", c.CommandPath(), what, c.UseLine())
		}
		return nil
	}
}

// oneOf checks a flag's value against those it may have.
func oneOf(flag, value string, allowed ...string) error {
	for _, a := range allowed {
		if value == a {
			return nil
		}
	}
	if near, ok := nearest.Of(value, allowed); ok {
		return fmt.Errorf("%s %q: did you mean %q? There is %s", flag, value, near, strings.Join(allowed, ", "))
	}
	return fmt.Errorf("%s %q: there is %s", flag, value, strings.Join(allowed, ", "))
}

// terminal reports whether a person looks at the output on a terminal that wants colours.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// choices lets the shell complete a flag's value.
func choices(c *cobra.Command, flag string, values ...string) {
	if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag is not there: a mistake in the code
	}
}

// given refuses flags that are there and empty, as a shell's unset variable
// leaves them: ignoring them would answer another question than was asked.
func given(c *cobra.Command, _ []string) error {
	var err error
	c.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "string" && f.Value.String() == "" && err == nil {
			err = fmt.Errorf("--%s is empty; give it a value or leave it out", f.Name)
		}
	})
	return err
}
