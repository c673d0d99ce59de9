// Package command implements the berth command line: simulate, why, whatif, defrag, verify,
// queues, estimate, migrate, anonymize, replay, plugins and version. docs/reference/commands.md describes them.
//
// A program with plugins of its own registers them in an engine.Registry and calls Main:
//
//	func main() {
//		registry := standard.Registry() // the plugins that are included in Berth
//		if err := registry.RegisterPluginBuilder(team.Name, team.New); err != nil {
//			log.Fatal(err)
//		}
//		os.Exit(command.Main(registry, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
//	}
//
// A SchedulerConfiguration in the input then adds the plugin to the profile by its name.
package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/nearest"
	"github.com/berth-project/berth/internal/printable"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The exit codes. They are API.
const (
	exitOK    = 0
	exitNo    = 1 // the answer is no: a task is pending, a scenario failed, or a copy decides otherwise
	exitInput = 2 // bad input or usage
	exitBug   = 3
)

// errNo is returned by a command that has printed its answer if the answer is no.
// Main prints nothing more and returns exitNo.
var errNo = errors.New("no")

// program holds what all commands share.
type program struct {
	registry *engine.Registry
	stdin    io.Reader
	stdout   io.Writer
	stderr   io.Writer
	terminal bool // stdout is a terminal that shows colors
	notes    []string
	screen   screen
	shown    *progress // while input is read
}

// Main runs the command line and returns the exit code: 0 if the command
// succeeds, 1 if the answer is no, 2 for bad input or usage, 3 for a bug.
// Profiles may name every plugin of the registry.
func Main(r *engine.Registry, args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	return execute(&program{registry: r, stdin: stdin, terminal: isColorTerminal(stdout), screen: screenOf(stderr)}, args, stdout, stderr)
}

// execute is Main for a program without writers.
func execute(p *program, args []string, stdout, stderr io.Writer) (code int) {
	buffer := bufio.NewWriterSize(stdout, 1<<16)
	stderr = &textWriter{w: stderr}
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(stderr, "berth: this is a bug, please report it with the input that caused it: %v\n\n%s", p, debug.Stack())
			code = exitBug
		}
	}()
	p.stdout, p.stderr = &textWriter{w: buffer, color: p.terminal}, stderr
	root := p.root()
	root.SetArgs(safeArgs(args))
	err := root.Execute()
	// An answer that cannot be written, such as on a full disk, is an error.
	if flushErr := buffer.Flush(); flushErr != nil && (err == nil || errors.Is(err, errNo)) {
		err = fmt.Errorf("the output could not be written: %w", flushErr)
	}
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errNo):
		return exitNo
	case errors.Is(err, syscall.EPIPE): // the reader, such as head, closed the pipe
		return exitOK
	}
	var inputErrors manifest.Errors
	if errors.As(err, &inputErrors) { // each line begins with file and line, which editors recognize
		fmt.Fprintln(stderr, err)
	} else {
		fmt.Fprintln(stderr, errorPrefix+inOneLine(strings.TrimSpace(err.Error()), args))
	}
	return exitInput
}

// errorPrefix is before errors that are not about a place in a file.
const errorPrefix = "berth: "

// inOneLine returns the message in one line if an argument has line breaks. The message may contain
// the argument, and what follows the break would look like a message of its own.
func inOneLine(message string, args []string) string {
	if slices.ContainsFunc(args, func(a string) bool { return strings.ContainsAny(a, "\n\r") }) {
		return printable.Text(message)
	}
	return message
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "berth",
		Short: "Decides which GPUs AI workloads run on, and explains why",
		Long: `Berth decides which GPUs AI workloads run on, and explains why.

It reads manifests (Node, Queue, Job, Model) and dumps of live clusters
(kubectl get nodes,pods,pdb -A -o yaml). It needs no server.

The exit code is 0 if the command succeeds, 1 if the answer is no (a task is
pending and --fail-on-pending is set, a scenario failed, no moves make room for
the workload of berth defrag --for, or other decisions are made about an
anonymized cluster), 2 for bad input or usage, and 3 for a bug in
Berth.`,
		Example: `  berth simulate cluster/
  berth why job/train-70b cluster/
  berth whatif cluster/ --add-nodes NVIDIA-L4=2`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: rejectEmptyFlags,
		Version:           versionLine(),
	}
	root.SetVersionTemplate("{{.Version}}")
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(p.simulate(), p.why(), p.whatif(), defragCommand(p), p.verify(), p.queues(), p.estimate(), migrateCommand(p), p.anonymize(), replayCommand(p), p.plugins(), p.version())
	return root
}

// safeArgs returns the arguments. Those of a completion are made printable: the library writes
// errors about them to standard error itself.
func safeArgs(args []string) []string {
	if len(args) == 0 || args[0] != cobra.ShellCompRequestCmd && args[0] != cobra.ShellCompNoDescRequestCmd {
		return args
	}
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = printable.Text(a)
	}
	return out
}

// flagError adds the most similar flag to the error for an unknown one.
func flagError(c *cobra.Command, err error) error {
	message := err.Error()
	if word, ok := strings.CutPrefix(message, "unknown flag: --"); ok {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		word, _, _ = strings.Cut(word, "=")
		if near, ok := nearest.Find(word, names); ok {
			message += "; did you mean --" + near + "?"
		}
	}
	return fmt.Errorf("%s (see %s --help)", message, c.CommandPath())
}

// minArgs requires at least n arguments. The error for fewer says what the
// command needs.
func minArgs(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < n {
			return fmt.Errorf("%s needs %s\nUsage: %s", c.CommandPath(), what, c.UseLine())
		}
		return nil
	}
}

// oneOf returns an error unless the value of the flag is one of the allowed ones.
func oneOf(flag, value string, allowed ...string) error {
	for _, a := range allowed {
		if value == a {
			return nil
		}
	}
	if near, ok := nearest.Find(value, allowed); ok {
		return fmt.Errorf("%s %q: did you mean %q? The values are %s", flag, value, near, strings.Join(allowed, ", "))
	}
	return fmt.Errorf("%s %q: unknown value; the values are %s", flag, value, strings.Join(allowed, ", "))
}

// isColorTerminal reports whether w is a terminal, and the environment does not
// turn colors off.
func isColorTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	return isTerminal(f)
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// completeValues lets the shell complete the value of a flag.
func completeValues(c *cobra.Command, flag string, values ...string) {
	if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the command has no such flag: a mistake in the code
	}
}

// rejectEmptyFlags returns an error for a flag with an empty value, such as one that
// is set from an unset variable of a shell. Ignoring it would answer a different
// question.
func rejectEmptyFlags(c *cobra.Command, _ []string) error {
	var err error
	c.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "string" && f.Value.String() == "" && err == nil {
			err = fmt.Errorf("--%s is empty; give it a value or omit it", f.Name)
		}
	})
	return err
}
