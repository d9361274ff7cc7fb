package control

import (
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// validateStatus returns an error unless s can be the status of a daemon or of a job: it must contain a version, a
// process and ranks, and must not refer to ranks outside its cluster.
func validateStatus(s *state.Status, source string) error {
	size := len(s.Cluster)
	switch {
	case s.Version == "" || s.Job == "" && (s.PID <= 0 || size == 0):
		return Errorf(Failed, "%s: the answer has no version, process or ranks: no zrlmpid listens there", source)
	case hasForeignRanks(s):
		return Errorf(Failed, "%s: the answer names ranks outside its cluster, 0 to %d: no zrlmpid "+
			"listens there", source, size-1)
	}
	return nil
}

// hasForeignRanks reports whether the status refers to ranks outside its cluster.
func hasForeignRanks(status *state.Status) bool {
	foreign := func(rank int) bool { return rank < 0 || rank >= len(status.Cluster) }
	for i := range status.Cluster {
		if status.Cluster[i].Rank != i {
			return true
		}
	}
	for i := range status.Ranks {
		r := &status.Ranks[i]
		ofForeign := func(p state.Peer) bool { return foreign(p.Rank) }
		if foreign(r.Rank) || slices.ContainsFunc(r.Engine.Peers, ofForeign) {
			return true
		}
	}
	return false
}
