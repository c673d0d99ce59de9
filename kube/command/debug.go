package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/pprof"
	"strconv"
	"sync"

	"github.com/berth-project/berth/kube/internal/scheduler"
)

// debugHandler serves what users of the cluster may read if they have the permission.
func debugHandler(s *scheduler.Scheduler, profiling bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", s.Metrics().Handler())
	mux.HandleFunc("/debug/sessions", func(w http.ResponseWriter, _ *http.Request) { listSessions(w, s) })
	var one sync.Mutex // an input is large: one is written at a time
	mux.HandleFunc("/debug/sessions/{number}", func(w http.ResponseWriter, r *http.Request) {
		one.Lock()
		defer one.Unlock()
		writeSession(w, r, s)
	})
	if profiling {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return mux
}

// listSessions writes the sessions whose input is kept.
func listSessions(w http.ResponseWriter, s *scheduler.Scheduler) {
	list, err := s.Sessions().List()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list) // the client is gone
}

// writeSession writes the input of the session that the path names.
func writeSession(w http.ResponseWriter, r *http.Request, s *scheduler.Scheduler) {
	number, err := strconv.ParseUint(r.PathValue("number"), 10, 64)
	if err != nil {
		http.Error(w, fmt.Sprintf("%q is not the number of a session; /debug/sessions lists them", r.PathValue("number")), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch found, err := s.Sessions().Write(number, w); {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case !found:
		http.Error(w, fmt.Sprintf("the input of session %d is not kept; /debug/sessions lists those that are", number), http.StatusNotFound)
	}
}
