package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/berth-project/berth/kube/internal/scheduler"
)

// stuckAfter is how long the loop may take for one turn before the process counts as not
// alive.
const stuckAfter = 2 * time.Minute

// server serves probes and metrics.
type server struct{ http *http.Server }

// serve starts to serve probes and metrics at the address.
func serve(address string, s *scheduler.Scheduler, profiling bool, log *slog.Logger) (*server, error) {
	if address == "" {
		return &server{}, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w; choose another with --address", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/livez", func(w http.ResponseWriter, r *http.Request) { probe(w, r, alive(s.Health())) })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) { probe(w, r, ready(s.Health())) })
	mux.Handle("/metrics", s.Metrics().Handler())
	if profiling {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	out := &server{&http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}}
	go func() {
		if err := out.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("Probes and metrics are not served any more.", "error", err)
		}
	}()
	return out, nil
}

func (s *server) stop() {
	if s.http != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.http.Shutdown(ctx)
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
