package core

import (
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// Effects are the actions of a core that cannot wait until the end of the event, except those on shared
// memory (Network.Memory). Payload is memory of the callers. They may reuse it when their request is
// complete, perhaps in the current event, so an implementation must not retain it.
type Effects interface {
	// SendHeader sends a handshake packet, in order with other packets to the peer.
	SendHeader(peer int, header []byte) error
	// SendData sends a DATA message, or starts to send it. If sent is true, at is the time when the network accepted
	// the message. If sent is false, the driver calls DataSent when the network has accepted it.
	SendData(peer int, id handshake.ID, header, payload []byte) (at handshake.Instant, sent bool, err error)
	// DropQueued drops packets queued for the previous connection.
	DropQueued(peer int)
	// SendPackets sends packets of the extended profile, which the network may lose. tooLong reports whether a packet
	// was too long for the first link.
	SendPackets(peer int, packets []Packet) (tooLong bool, err error)
	// LongestDatagram returns the maximum packet length in bytes known to the system, or 0 if it knows none.
	LongestDatagram(peer int) int
	// Place sets the destination of a peer's payload; a Placement without Buf ends placement. Payload that
	// was placed, but not yet processed when Revoke is called, counts as lost.
	Place(at Placement)
	Revoke(peer int)
	// Random returns 64 random bits.
	Random() uint64
	// NewRequest returns an empty request with its owner set. Release frees a request that is no longer
	// referenced.
	NewRequest() *Request
	Release(r *Request)
}

// Outcome is the result of an event for its driver.
type Outcome struct {
	// Completed are the requests completed by the event. The driver empties it.
	Completed []*Request
	// Rare means that one of the fields up to Report is set.
	Rare bool
	// Wake holds functions that wake callers waiting for something other than a request.
	Wake []func()
	// Jobs are user functions to call. The driver reports their completion with JobDone.
	Jobs []collective.Job
	// Report means that other ranks wait for this rank's report. The driver passes it to Reports.Deliver.
	Report bool
	// Deadline is the latest time of the next Tick, or Never.
	Deadline handshake.Instant
	// Coalesced means that packets are held back, to be sent together with packets of later sends. Poll asks the
	// driver to poll soon, because the caller may not do so; the driver resets it.
	Coalesced, Poll bool
}

// Clear resets the rare fields after the driver has processed them.
func (o *Outcome) Clear() {
	clear(o.Wake)
	clear(o.Jobs)
	o.Wake, o.Jobs, o.Report, o.Rare = o.Wake[:0], o.Jobs[:0], false, false
}
