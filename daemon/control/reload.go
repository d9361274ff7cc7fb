package control

import (
	"context"
	"net/http"
)

// Reloaded is what came of a reload.
type Reloaded struct {
	// Config is where the configuration was read from.
	Config string `json:"config"`
	// Changes are the keys that say something else than before.
	Changes []Change `json:"changes"`
}

// Change is a key that says something else than before.
type Change struct {
	// Rank is the rank whose entry has the key; nil if none has.
	Rank *int   `json:"rank,omitempty"`
	Key  string `json:"key"`
	// From and To are the values, empty where the key is not set.
	From string `json:"from"`
	To   string `json:"to"`
	// Text is all of that in one line.
	Text string `json:"text"`
}

func (s *Server) reload(w http.ResponseWriter, _ *http.Request) {
	answer, err := s.backend.Reread()
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, answer)
}

// Reload has the daemon read its configuration again, and go by it.
func (c *Client) Reload(ctx context.Context) (Reloaded, error) {
	var r Reloaded
	return r, c.call(ctx, http.MethodPost, "reload", nil, nil, &r)
}
