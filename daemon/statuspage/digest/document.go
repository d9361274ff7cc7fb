package digest

import "github.com/zrlmpi/zrlmpid/mpe/state"

// Document is a status as presented by /status.json and `zrlctl status --json`: the state of the engines and the
// conclusions drawn from it.
type Document struct {
	*state.Status
	Verdict  Verdict   `json:"verdict"`
	Waits    []Wait    `json:"waits"`
	Cycles   []Cycle   `json:"cycles"`
	Problems []Problem `json:"problems"`
}

// NewDocument returns the Document that combines a status with its digest.
func NewDocument(s *state.Status, d *Digest) Document {
	return Document{s, d.Verdict(), d.Waits, d.Cycles, d.Problems}
}
