package control

// Reloaded is the result of a reload.
type Reloaded struct {
	// Config is the source of the configuration.
	Config string `json:"config"`
	// Changes are the keys that changed.
	Changes []Change `json:"changes"`
}

// Change is a key that changed.
type Change struct {
	// Rank is the rank whose entry has the key, or nil.
	Rank *int   `json:"rank,omitempty"`
	Key  string `json:"key"`
	// From and To are the old and the new value, empty if the key is not set.
	From string `json:"from"`
	To   string `json:"to"`
	// Text describes the change in one line.
	Text string `json:"text"`
}
