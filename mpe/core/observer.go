package core

// Observer is notified of events in an engine. Its methods are called with the engine's lock held: they must
// be quick, and must not block or call the engine.
type Observer interface {
	// Dropped reports a packet that was dropped. peer is UnknownPeer if its address belongs to no rank.
	Dropped(rank, peer int, d Drop)
	// Noted reports an event with peer.
	Noted(rank, peer int, n Note)
	// Done reports the end of a message, with err or nil.
	Done(rank int, s Status, err error)
	// CallFailed reports that a collective call has failed. Done is called for its messages.
	CallFailed(rank int, err error)
	// TransportError reports that the network failed to send or to receive.
	TransportError(rank int, err error)
}

type nopObserver struct{}

func (nopObserver) Dropped(int, int, Drop)    {}
func (nopObserver) Noted(int, int, Note)      {}
func (nopObserver) Done(int, Status, error)   {}
func (nopObserver) CallFailed(int, error)     {}
func (nopObserver) TransportError(int, error) {}
