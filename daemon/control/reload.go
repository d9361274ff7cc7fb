package control

// ReloadResult is the result of a reload.
type ReloadResult struct {
	// Config names the source of the configuration.
	Config string `json:"config"`
	// Changes lists the changed keys.
	Changes []Change `json:"changes"`
}

// Change describes a changed key.
type Change struct {
	// Rank is the rank whose entry in the configuration contains the changed key, or nil for a key outside the rank
	// entries.
	Rank *int   `json:"rank,omitempty"`
	Key  string `json:"key"`
	// From and To are the old and new values of the key. Each is empty if the key is not set.
	From string `json:"from"`
	To   string `json:"to"`
	// Text describes the change in a single line.
	Text string `json:"text"`
}
