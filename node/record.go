package node

import (
	"github.com/zrlmpi/zrlmpid/metrics/phases"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// Record makes the recorder of the phases of the rank's messages, and has its reports contain them. It is for the observer that Start is
// given. limit is how many peers have series of their own.
func (r *Rank) Record(limit int) *phases.Recorder {
	peers := make([]phases.Peer, len(r.Links()))
	for _, remote := range r.Config.Ranks {
		peers[remote.Rank] = phases.Peer{Profile: r.Links()[remote.Rank].Profile.String(), Kind: string(remote.Peer)}
	}
	r.Recorder = phases.NewRecorder(r.Self.Rank, peers, limit)
	return r.Recorder
}

// recording is the observer of a rank of a job.
type recording struct{ *phases.Recorder }

func (recording) Dropped(int, int, mpe.Drop) {}
func (recording) Noted(int, int, mpe.Note)   {}
func (recording) TransportError(int, error)  {}
func (recording) CallFailed(int, error)      {}

// Done implements mpe.Observer.
func (o recording) Done(_ int, s mpe.Status, err error) { o.Recorder.Done(&s, err) }
