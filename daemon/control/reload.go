package control

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
