package control

// Support is the part of a bug report that the daemon contributes in addition to its status.
type Support struct {
	// Log is the end of the daemon's log, in complete lines.
	Log string `json:"log"`
	// Records lists the failure records written by the daemon. It is nil if the daemon writes none.
	Records *Records `json:"records"`
}

// Records describes the files in a spool.
type Records struct {
	Directory string `json:"directory"`
	// Size is the maximum total size in bytes of all files.
	Size  int64    `json:"size_bytes"`
	Files []Record `json:"files"` // oldest first
}

// Record describes one file in a spool.
type Record struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}
