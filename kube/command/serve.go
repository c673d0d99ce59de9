package command

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/berth-project/berth/kube/internal/scheduler"
	"github.com/berth-project/berth/kube/internal/secure"
	"k8s.io/client-go/kubernetes"
)

// stuckAfter is how long the loop may take for one turn before the process counts as not
// alive.
const stuckAfter = 2 * time.Minute

// servers serve probes and metrics and, to users of the cluster alone, the input of sessions.
type servers []*http.Server

// serve starts the servers.
func (f *flags) serve(s *scheduler.Scheduler, client kubernetes.Interface, log *slog.Logger) (*servers, error) {
	var out servers
	if f.address != "" {
		mux := http.NewServeMux()
		mux.HandleFunc("/livez", func(w http.ResponseWriter, r *http.Request) { probe(w, r, alive(s.Health())) })
		mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) { probe(w, r, ready(s.Health())) })
		mux.Handle("/metrics", s.Metrics().Handler())
		if err := out.start("--address", f.address, nil, mux, log); err != nil {
			return nil, err
		}
	}
	if f.secureAddress != "" {
		config, err := secure.TLS(f.certificate, f.key)
		if err == nil {
			gate := secure.New(secure.Options{Client: client, Log: log})
			err = out.start("--secure-address", f.secureAddress, config, gate.Protect(debugHandler(s, f.profiling)), log)
		}
		if err != nil {
			out.stop()
			return nil, err
		}
	}
	return &out, nil
}

// start starts to serve at the address that the flag names, by TLS if there is a configuration
// of it.
func (list *servers) start(flag, address string, config *tls.Config, handler http.Handler, log *slog.Logger) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("%w; choose another with %s", err, flag)
	}
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: 5 * time.Minute, IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	*list = append(*list, server)
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("Nothing is served any more.", "address", address, "error", err)
		}
	}()
	return nil
}

func (list servers) stop() {
	for _, s := range list {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = s.Shutdown(ctx)
		cancel()
	}
}

// check is one line of a probe.
type check struct {
	name string
	err  error
}

// alive checks that decisions are made: the loop turns, does not stay in one session, and runs
// a session if something is to be decided.
func alive(h *scheduler.Health) []check {
	c := check{name: "loop"}
	if since := time.Since(h.Turned()); since > stuckAfter {
		c.err = fmt.Errorf("no turn of the loop has ended for %s", since.Round(time.Second))
	}
	decisions := check{name: "decisions"}
	if due := h.DueFor(time.Now()); due > stuckAfter {
		decisions.err = fmt.Errorf("jobs are due, and no session has ended for %s", due.Round(time.Second))
	}
	return []check{c, decisions}
}

// ready checks that all objects are known, and that sessions do not fail again and again. A restart
// would not mend a plugin that fails, and the decisions before its failure count.
func ready(h *scheduler.Health) []check {
	caches := check{name: "caches"}
	if !h.Synced() {
		caches.err = errors.New("not all objects are known yet")
	}
	sessions := check{name: "sessions"}
	if failing := h.FailingFor(time.Now()); failing > stuckAfter {
		sessions.err = fmt.Errorf("every session has ended with an error for %s; the log names the plugin", failing.Round(time.Second))
	}
	return append(alive(h), caches, sessions)
}

// probe writes the checks, as the probes of Kubernetes do: all of them if the request has
// ?verbose, or if one fails.
func probe(w http.ResponseWriter, r *http.Request, checks []check) {
	failed := false
	for _, c := range checks {
		failed = failed || c.err != nil
	}
	if failed {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	if _, verbose := r.URL.Query()["verbose"]; !verbose && !failed {
		fmt.Fprintln(w, "ok")
		return
	}
	for _, c := range checks {
		if c.err != nil {
			fmt.Fprintf(w, "[-]%s failed: %v\n", c.name, c.err)
		} else {
			fmt.Fprintf(w, "[+]%s ok\n", c.name)
		}
	}
}
