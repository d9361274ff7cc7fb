package mpe

import (
	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
)

// Observer is told what happens in an engine. Its methods are called with the
// engine's lock held: they must be quick, must not block and must not call the
// engine.
type Observer interface {
	// Dropped: something that arrived was not used. peer is UnknownPeer if
	// its address is nobody's; a is nil if a time-out brought it about. The
	// arrival's bytes are valid during the call only.
	Dropped(rank, peer int, a *RxPacket, act handshake.Action)
	// Noted: an Event of the handshake with peer.
	Noted(rank, peer int, act handshake.Action)
	// DroppedExtended and NotedExtended are the same for a peer of the extended
	// profile. act is valid during the call only.
	DroppedExtended(rank, peer int, a *RxPacket, act *extended.Action)
	NotedExtended(rank, peer int, act *extended.Action)
	// Done: a message ended, with err or without.
	Done(rank int, s Status, err error)
	// TransportError: the network refused to send or to receive.
	TransportError(rank int, err error)
}

type nopObserver struct{}

func (nopObserver) Dropped(int, int, *RxPacket, handshake.Action)         {}
func (nopObserver) Noted(int, int, handshake.Action)                      {}
func (nopObserver) DroppedExtended(int, int, *RxPacket, *extended.Action) {}
func (nopObserver) NotedExtended(int, int, *extended.Action)              {}
func (nopObserver) Done(int, Status, error)                               {}
func (nopObserver) TransportError(int, error)                             {}
