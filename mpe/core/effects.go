package core

import (
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// Effects are the actions that a core performs during an event, except actions on shared memory, which Network.Memory
// performs. Implementations must not retain payload, because callers may reuse their memory once their requests
// complete, perhaps in the current event.
type Effects interface {
	// SendHeader sends a handshake packet, in order with other packets to the peer.
	SendHeader(peer int, header []byte) error
	// SendData sends a DATA message, or starts to send it. If sent is true, at is the time when the network accepted
	// the message. Otherwise the driver calls DataSent when the network has accepted or refused it.
	SendData(peer int, id handshake.ID, header, payload []byte) (at handshake.Instant, sent bool, err error)
	// DropQueued drops packets that are still queued for the peer's previous connection.
	DropQueued(peer int)
	// SendPackets sends packets of the extended profile, which the network may lose. tooLong reports whether a packet
	// was too long for the first link.
	SendPackets(peer int, packets []Packet) (tooLong bool, err error)
	// LongestDatagram returns the maximum length in bytes of a packet to peer, or 0 if the system does not know it.
	LongestDatagram(peer int) int
	// Place sets the destination of a peer's payload; a Placement without Buf ends placement. Revoke also ends
	// placement, and drops payload that was placed but not processed yet, as if the network had lost it.
	Place(at Placement)
	Revoke(peer int)
	// Random returns 64 random bits.
	Random() uint64
	// NewRequest returns an empty request whose Owner is set. Release frees a request that is no longer referenced.
	NewRequest() *Request
	Release(r *Request)
}

// Outcome is what an event leaves to the driver: completed requests, work to do, and the next deadline.
type Outcome struct {
	// Completed lists the requests that the event completed. The driver empties the slice.
	Completed []*Request
	// Rare is set if Wake, Jobs or Report is set, so that the driver can check them all at once.
	Rare bool
	// Wake lists functions that wake callers waiting for something other than a request.
	Wake []func()
	// Jobs lists the user functions to call. The driver reports their completion with JobDone.
	Jobs []collective.Job
	// Report asks the driver to produce the report that this rank gives to other ranks, and to pass it to
	// Reports.Deliver.
	Report bool
	// Deadline is the latest time at which the next Tick must occur, or Never.
	Deadline handshake.Instant
	// Coalesced means that packets are held back, to be sent together with packets of later sends. Poll asks the driver
	// to poll the sources soon, in case the caller only sends; the driver resets it.
	Coalesced, Poll bool
}

// Clear resets the fields that Rare covers, after the driver has processed them.
func (o *Outcome) Clear() {
	clear(o.Wake)
	clear(o.Jobs)
	o.Wake, o.Jobs, o.Report, o.Rare = o.Wake[:0], o.Jobs[:0], false, false
}
