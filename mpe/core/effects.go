package core

import (
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// Effects is what a core does at once, beside what it does with memory that it shares (Network.Memory). Its packets' payload is its callers' memory, which is theirs again when their
// request has ended, perhaps in the event at hand; so nothing of it may be kept.
type Effects interface {
	// Header sends a packet of a handshake, in order with the other packets to the peer.
	Header(peer int, header []byte) error
	// Data sends a DATA message, or begins to: then sent is false, and the driver calls DataSent when the network has
	// taken it. Otherwise at is when it had.
	Data(peer int, id handshake.ID, header, payload []byte) (at handshake.Instant, sent bool, err error)
	// Reconnected drops what waits to be sent over the connection before.
	Reconnected(peer int)
	// Packets sends packets of the extended profile, which the network may lose. It reports whether one was too long for
	// the first link.
	Packets(peer int, packets []Packet) (tooLong bool, err error)
	// LongestDatagram returns how many bytes a packet may have, by what the system knows; 0 if that is nothing.
	LongestDatagram(peer int) int
	// Place says where payload of a peer belongs; one without Buf ends that. What has been put there until Revoke is
	// called counts as lost.
	Place(at Placement)
	Revoke(peer int)
	// Random returns 64 random bits.
	Random() uint64
	// NewRequest returns a request that is empty but for its owner, and Release takes one back that nothing refers to.
	NewRequest() *Request
	Release(r *Request)
}

// Outcome is the rest of an event, for its driver.
type Outcome struct {
	// Ended are the requests that have ended, for their callers. The driver empties it.
	Ended []*Request
	// Rare: some of the following is set, up to Report.
	Rare bool
	// Wake is called for what callers wait for besides requests.
	Wake []func()
	// Jobs are users' functions to be called. The driver calls Computed then.
	Jobs []collective.Job
	// Report: other ranks wait for this rank's report. The driver calls ReportMade with it.
	Report bool
	// Deadline is when tick is to be called at the latest, or never.
	Deadline handshake.Instant
	// Coalesced: packets wait for those of further sends. Poll: the driver is to poll soon, as its caller may not; it resets that.
	Coalesced, Poll bool
}

// Clear empties what is rare, when the driver has dealt with it.
func (o *Outcome) Clear() {
	clear(o.Wake)
	clear(o.Jobs)
	o.Wake, o.Jobs, o.Report, o.Rare = o.Wake[:0], o.Jobs[:0], false, false
}
