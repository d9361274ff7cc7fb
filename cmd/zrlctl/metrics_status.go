package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/zrlmpi/zrlmpid/internal/query"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// serveJobStatus serves the state of a job's ranks on this host to zrlctl why on other hosts, in the format of a
// daemon's status. The path names one of this user's jobs. It may omit the name if the user has only one job.
func serveJobStatus(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("job")
	if strings.Contains(name, "@") {
		http.Error(w, fmt.Sprintf("job %q: only jobs of the user of zrlctl metrics are served", name),
			http.StatusNotFound)
		return
	}
	j, err := findJob(name)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	status, err := query.Get[state.Status](r.Context(), j.Handle, query.Request{Kind: query.Status})
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(status) // fails only if the client has disconnected
}
