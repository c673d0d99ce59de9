package ctl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/kube/internal/scheduler"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
)

// sessionFlags say which session is wanted, and where the scheduler is found.
type sessionFlags struct {
	session                   string // a number, "list", or "" for none
	address, authority        string
	insecure                  bool
	leaseNamespace, leaseName string
	port                      int
}

func (f *sessionFlags) add(set *pflag.FlagSet, leaseName string) {
	set.StringVar(&f.session, "session", "", "write the input of the session of berth-scheduler with this number instead; \"list\" lists the sessions that it keeps")
	set.StringVar(&f.address, "scheduler-address", "", "the secure address of berth-scheduler, such as 10.0.0.7:10272 (default: it is found by its lease and reached through the API server)")
	set.StringVar(&f.authority, "scheduler-certificate-authority", "", "a file with the certificate authority of the scheduler at --scheduler-address (default: that of the kubeconfig file)")
	set.BoolVar(&f.insecure, "insecure-skip-scheduler-tls-verify", false, "do not verify the certificate of the scheduler at --scheduler-address, to which the credentials are sent")
	set.StringVar(&f.leaseNamespace, "lease-namespace", "kube-system", "the namespace of the lease and of the pods of berth-scheduler")
	set.StringVar(&f.leaseName, "lease-name", leaseName, "the name of the lease of berth-scheduler")
	set.IntVar(&f.port, "scheduler-port", 10272, "the port of the secure address of the pods of berth-scheduler")
}

// runSession writes the input of a session, or lists the sessions.
func (p *program) runSession(f *sessionFlags, args []string) error {
	if p.flags.file != "" {
		return errors.New("--session asks berth-scheduler; omit --filename")
	}
	path := "/debug/sessions"
	if f.session != "list" {
		number, err := strconv.ParseUint(f.session, 10, 64)
		if err != nil {
			return fmt.Errorf("--session %s: want the number of a session, or \"list\"", f.session)
		}
		path += "/" + strconv.FormatUint(number, 10)
	}
	config, _, err := p.flags.connect()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	data, err := f.ask(ctx, config, path)
	if err != nil {
		return err
	}
	if f.session == "list" {
		return p.writeSessions(args, data)
	}
	return p.writeSession(args, data)
}

// ask returns what the scheduler that leads answers.
func (f *sessionFlags) ask(ctx context.Context, config *rest.Config, path string) ([]byte, error) {
	direct := rest.CopyConfig(config)
	address := f.address
	if address != "" {
		f.verify(direct)
	} else {
		forward, err := f.forward(ctx, config)
		if err != nil {
			return nil, err
		}
		defer forward.stop()
		// The connection ends in the pod, as the API server assures. The certificate of the
		// pod is signed by itself as a rule.
		address = forward.address
		direct.TLSClientConfig = withoutVerification(direct.TLSClientConfig)
	}
	direct.Host, direct.APIPath, direct.Timeout = "https://"+address, "", 0
	client, err := rest.HTTPClientFor(direct)
	if err != nil {
		return nil, explainConfig(err)
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, direct.Host+path, nil)
	if err != nil {
		return nil, fmt.Errorf("--scheduler-address %s: %w", f.address, err)
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("berth-scheduler does not answer: %w; check its flag --secure-address, and --scheduler-address or --scheduler-port", err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("the answer of berth-scheduler was cut off: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("berth-scheduler answers %s: %s", answer.Status, strings.TrimSpace(string(data)))
	}
	return data, nil
}

// verify sets how the certificate of the scheduler at an address is verified.
func (f *sessionFlags) verify(c *rest.Config) {
	switch {
	case f.insecure:
		c.TLSClientConfig = withoutVerification(c.TLSClientConfig)
	case f.authority != "":
		c.CAData, c.CAFile, c.Insecure, c.ServerName = nil, f.authority, false, ""
	default:
		c.ServerName = ""
	}
}

// withoutVerification returns the configuration with the certificate of the user and without a
// check of that of the server.
func withoutVerification(c rest.TLSClientConfig) rest.TLSClientConfig {
	c.CAData, c.CAFile, c.ServerName, c.Insecure = nil, "", "", true
	return c
}

// writeSessions writes the list of sessions.
func (p *program) writeSessions(args []string, data []byte) error {
	if len(args) > 0 {
		return fmt.Errorf("--session list writes to standard output, and %q is a file; omit it", args[0])
	}
	var list []scheduler.SessionSummary
	if err := json.Unmarshal(data, &list); err != nil {
		return fmt.Errorf("the answer is not that of berth-scheduler: %w", err)
	}
	rows := [][]string{{"SESSION", "TIME", "TOOK", "TRIED", "BOUND", "NOMINATED", "EVICTED", "REFUSED"}}
	for _, s := range slices.Backward(list) {
		row := []string{strconv.FormatUint(s.Number, 10), s.Time.Format("2006-01-02T15:04:05.000Z"), s.Took}
		for _, n := range []int{s.Tried, s.Bound, s.Nominated, s.Evicted, s.Refused} {
			row = append(row, strconv.Itoa(n))
		}
		rows = append(rows, row)
	}
	p.answers.Grid(rows)
	return nil
}

// writeSession writes the input of a session, with notes about what a snapshot does not have.
func (p *program) writeSession(args []string, data []byte) error {
	var s manifest.Snapshot
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("the answer is not that of berth-scheduler: %w", err)
	}
	pods, err := scheduler.PodsOf(s.Kubernetes)
	if err != nil {
		return err
	}
	s.Notes = p.notesAbout(pods)
	for _, note := range s.Notes {
		fmt.Fprintln(p.answers.Stderr(), "note: "+note)
	}
	if len(s.Notes) > 0 {
		fmt.Fprintln(p.answers.Stderr(), "note: berth-scheduler reads what these notes name; \"kubectl berth simulate -f FILE\" decides as it did in the session")
	}
	return p.save(args, s.Write)
}

// isSnapshot reports whether the text is a snapshot.
func isSnapshot(data []byte) bool {
	var head struct {
		Kind string `json:"kind"`
	}
	return bytes.Contains(data[:min(len(data), 4096)], []byte(`"Snapshot"`)) && json.Unmarshal(data, &head) == nil && head.Kind == "Snapshot"
}

// differences returns in what the decisions differ from those of the session; nil if in
// nothing. A session lists a refusal only if it is new, and does not try jobs that would be
// refused again.
func differences(s *manifest.Session, decisions []manifest.SessionDecision, refusals []manifest.SessionRefusal) []string {
	var out []string
	for i := range max(len(s.Decisions), len(decisions)) {
		was, is := "nothing", "nothing"
		if i < len(s.Decisions) {
			was = decisionText(&s.Decisions[i])
		}
		if i < len(decisions) {
			is = decisionText(&decisions[i])
		}
		if was != is {
			out = append(out, fmt.Sprintf("decision %d was %s, and is %s", i+1, was, is))
		}
	}
	for _, r := range s.Refusals {
		at := slices.IndexFunc(refusals, func(o manifest.SessionRefusal) bool {
			return o.Workload == r.Workload && o.Reason == r.Reason && o.Message == r.Message
		})
		if at >= 0 {
			continue
		}
		is := "it is not refused"
		if same := slices.IndexFunc(refusals, func(o manifest.SessionRefusal) bool { return o.Workload == r.Workload }); same >= 0 {
			is = "is by " + refusals[same].Reason + ": " + refusals[same].Message
		}
		out = append(out, fmt.Sprintf("the refusal of %s was by %s: %s, and %s", r.Workload, r.Reason, r.Message, is))
	}
	return out
}

func decisionText(d *manifest.SessionDecision) string {
	text := fmt.Sprintf("%s %s/%s on %s %v", d.Action, d.Workload, d.Task, d.Node, d.Devices)
	if d.For != "" {
		text += " for " + d.For
	}
	return text
}

// compare writes whether the session decided the same.
func (p *program) compare(s *manifest.Session, decisions []manifest.SessionDecision, refusals []manifest.SessionRefusal) {
	list := differences(s, decisions, refusals)
	if len(list) == 0 {
		fmt.Fprintf(p.answers.Stderr(), "note: berth-scheduler decided the same in session %d\n", s.Number)
		return
	}
	fmt.Fprintf(p.answers.Stderr(), "note: berth-scheduler decided otherwise in session %d: %s\n", s.Number, explain.List(list, mostNotes))
}
