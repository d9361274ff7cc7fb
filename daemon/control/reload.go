package control

import (
	"context"
	"net/http"
)

// Reloaded is the result of a reload.
type Reloaded struct {
	// Config is the source of the configuration.
	Config string `json:"config"`
	// Changes are the keys that have changed.
	Changes []Change `json:"changes"`
}

// Change is a key that has changed.
type Change struct {
	// Rank is the rank whose entry has the key; nil for other keys.
	Rank *int   `json:"rank,omitempty"`
	Key  string `json:"key"`
	// From and To are the values, empty where the key is not set.
	From string `json:"from"`
	To   string `json:"to"`
	// Text is the change in one line.
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

// Reload makes the daemon reload its configuration. It may take longer than other requests: the daemon may look up
// names.
func (c *Client) Reload(ctx context.Context) (Reloaded, error) {
	var r Reloaded
	err := c.callWithin(ctx, 3*c.reply, http.MethodPost, "reload", nil, nil, &r)
	if err == nil && r.Config == "" {
		err = c.unexpected("a reload of no configuration")
	}
	return r, err
}
