package control

// Support is the part of a bug report that is not in the status.
type Support struct {
	// Log is the end of the daemon's log, in whole lines.
	Log string `json:"log"`
	// Records are the records of failures that the daemon has written; nil if it writes none.
	Records *Records `json:"records"`
}

// Records are the files of a spool.
type Records struct {
	Directory string `json:"directory"`
	// Size is the most bytes of all files together.
	Size  int64    `json:"size_bytes"`
	Files []Record `json:"files"` // the oldest first
}

// Record is one file.
type Record struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}
