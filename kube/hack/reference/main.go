// Command reference writes the pages of docs/reference that are about the module kube/: the
// flags of its programs from their help, the metrics from their descriptions, and the reasons
// of the filters of Kubernetes.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/kube/command"
	"github.com/berth-project/berth/kube/internal/intree"
	"github.com/berth-project/berth/kube/internal/metrics"
	"github.com/berth-project/berth/plugins/standard"
	"github.com/prometheus/client_golang/prometheus"
)

const generated = "<!-- Written by `make kube-docs`; change the code instead. -->\n\n"

func main() {
	pages, err := pages()
	for name, text := range pages {
		if err == nil {
			err = os.WriteFile(filepath.Join("..", "docs", "reference", name), []byte(text), 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// pages returns the pages by file name.
func pages() (map[string]string, error) {
	list, err := metricsTable()
	if err != nil {
		return nil, err
	}
	return map[string]string{
		"kube-commands.md": "# berth-scheduler, berth-controller and kubectl berth\n\n" + generated + commands(),
		"kube-metrics.md":  "# Metrics of berth-scheduler\n\n" + generated + list,
		"kube-reasons.md":  "# Reasons of the filters of Kubernetes\n\n" + generated + reasons(),
	}, nil
}

// commands returns the help of both programs and of each command of kubectl berth.
func commands() string {
	var b strings.Builder
	var help bytes.Buffer
	command.Main(standard.Registry(), []string{"--help"}, &help)
	fmt.Fprintf(&b, "## berth-scheduler\n\n```\n%s```\n\n", help.String())
	help.Reset()
	command.Controller(standard.Registry(), []string{"--help"}, &help)
	fmt.Fprintf(&b, "## berth-controller\n\n```\n%s```\n\n", help.String())
	top := kubectl("--help")
	fmt.Fprintf(&b, "## kubectl berth\n\n```\n%s```\n\n", top)
	for _, name := range subcommands(top) {
		fmt.Fprintf(&b, "## kubectl berth %s\n\n```\n%s```\n\n", name, kubectl(name, "--help"))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func kubectl(args ...string) string {
	var out bytes.Buffer
	command.Kubectl(standard.Registry(), args, strings.NewReader(""), &out, &out)
	return out.String()
}

// subcommands returns the commands that a help lists, except those that every program has.
func subcommands(help string) []string {
	var out []string
	_, list, _ := strings.Cut(help, "Available Commands:\n")
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			break
		}
		if fields[0] != "help" && fields[0] != "completion" {
			out = append(out, fields[0])
		}
	}
	return out
}

// description matches the text of a prometheus.Desc, whose fields are not exported.
var description = regexp.MustCompile(`^Desc\{fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*"), constLabels: \{.*\}, variableLabels: \{(.*)\}\}$`)

// metricsTable lists the metrics whose names begin with berth_. The others are those of every
// Go program.
func metricsTable() (string, error) {
	descriptions := make(chan *prometheus.Desc)
	go func() {
		metrics.New(metrics.Sources{}).Describe(descriptions)
		close(descriptions)
	}()
	var rows []string
	var failed error
	for d := range descriptions {
		m := description.FindStringSubmatch(d.String())
		if m == nil {
			failed = fmt.Errorf("%s: the description of a metric has another form than expected", d)
			continue
		}
		name, _ := strconv.Unquote(m[1])
		help, _ := strconv.Unquote(m[2])
		if strings.HasPrefix(name, "berth_") {
			labels := ""
			if m[3] != "" {
				labels = "`" + strings.ReplaceAll(m[3], ",", "`, `") + "`"
			}
			rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", name, labels, help))
		}
	}
	slices.Sort(rows)
	return "`/metrics` also has the metrics of the Go runtime and of the process.\n\n| metric | labels | meaning |\n|---|---|---|\n" + strings.Join(rows, ""), failed
}

func reasons() string {
	var b strings.Builder
	b.WriteString("The plugin " + intree.Name + " asks the filters of kube-scheduler, and gives these reasons. The name in parentheses is that of the filter. [reasons.md](reasons.md) lists the reasons of all other plugins.\n\n")
	b.WriteString("| reason | cured by | meaning |\n|---|---|---|\n")
	for _, r := range intree.Reasons() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.Reason, strings.ReplaceAll(r.Cure.String(), "|", ", "), r.Meaning)
	}
	return b.String()
}
