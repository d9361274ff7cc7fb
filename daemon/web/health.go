package web

import (
	"fmt"
	"net/http"
	"net/http/pprof"
)

// serveHealthy always answers OK: a process that answers is healthy.
func (s *Server) serveHealthy(w http.ResponseWriter, _ *http.Request) {
	writeText(w, http.StatusOK, "zrlmpid is healthy.")
}

// serveReady reports whether messages can be exchanged.
func (s *Server) serveReady(w http.ResponseWriter, _ *http.Request) {
	if err := s.opts.Ready(); err != nil {
		writeText(w, http.StatusServiceUnavailable, fmt.Sprintf("zrlmpid is not ready: %v.", err))
		return
	}
	writeText(w, http.StatusOK, "zrlmpid is ready.")
}

// writeText writes an answer that no cache may store, because the state can change at any time.
func writeText(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	fmt.Fprintln(w, text)
}

// handleProfiles mounts the handlers for profiles as streams, because the client chooses how long a profile takes.
func (s *Server) handleProfiles() {
	for path, f := range map[string]http.HandlerFunc{
		"": pprof.Index, "cmdline": pprof.Cmdline, "profile": pprof.Profile, "symbol": pprof.Symbol,
		"trace": pprof.Trace,
	} {
		s.HandleStreams("GET /debug/pprof/"+path, f)
	}
}
