package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/berth-project/berth/kube/internal/scheduler"
)

// stuckAfter is how long the loop may take for one turn before the process counts as not
// alive.
const stuckAfter = 2 * time.Minute

// server serves probes and metrics.
type server struct{ http *http.Server }

// serve starts to serve probes and metrics at the address.
func serve(address string, h *scheduler.Health, elects bool, log *slog.Logger) (*server, error) {
	if address == "" {
		return &server{}, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w; choose another with --address", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/livez", func(w http.ResponseWriter, r *http.Request) { probe(w, r, alive(h.Stats())) })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) { probe(w, r, ready(h.Stats(), elects)) })
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) { writeMetrics(w, h.Stats()) })
	s := &server{&http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}}
	go func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("Probes and metrics are not served any more.", "error", err)
		}
	}()
	return s, nil
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

// alive checks that decisions are made: the loop turns, and does not stay in one session.
func alive(s scheduler.Stats) []check {
	c := check{name: "loop"}
	if since := time.Since(s.Turned); s.Turned.UnixNano() > 0 && since > stuckAfter {
		c.err = fmt.Errorf("no turn of the loop has ended for %s", since.Round(time.Second))
	}
	return []check{c}
}

// ready checks that all objects are known.
func ready(s scheduler.Stats, elects bool) []check {
	caches := check{name: "caches"}
	if !s.Synced {
		caches.err = errors.New("not all objects are known yet")
	}
	return append(alive(s), caches)
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

// writeMetrics writes the figures in the text format of Prometheus.
func writeMetrics(w http.ResponseWriter, s scheduler.Stats) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	for _, m := range []struct {
		name, kind, help string
		value            float64
	}{
		{"berth_sessions_total", "counter", "Sessions that have ended.", float64(s.Sessions)},
		{"berth_sessions_failed_total", "counter", "Sessions that ended with an error.", float64(s.Failed)},
		{"berth_session_duration_seconds_total", "counter", "Time that sessions took.", s.SessionTime.Seconds()},
		{"berth_jobs_tried_total", "counter", "Jobs that had a turn in a session.", float64(s.Tried)},
		{"berth_requests_done_total", "counter", "Bindings and evictions that were carried out.", float64(s.Requests)},
		{"berth_requests_failed_total", "counter", "Bindings and evictions that the API server refused.", float64(s.RequestsFailed)},
		{"berth_requests_not_sent_total", "counter", "Bindings and evictions that were not sent, or whose outcome is not known, because the lease was lost.", float64(s.NotSent)},
		{"berth_facts_rejected_total", "counter", "Facts that the State rejected as malformed.", float64(s.RejectedFacts)},
	} {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n%s %g\n", m.name, m.help, m.name, m.kind, m.name, m.value)
	}
}
