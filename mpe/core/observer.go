package core

// Observer is notified of events in an engine. The engine holds its lock while it calls these methods: they must be
// quick, and must not block or call the engine.
type Observer interface {
	// Dropped reports a dropped packet. peer is UnknownPeer if the packet's address belongs to no rank.
	Dropped(rank, peer int, d Drop)
	// Noted reports an event with peer.
	Noted(rank, peer int, n Note)
	// Done reports the completion of a message, or its failure if err is not nil.
	Done(rank int, s Status, err error)
	// CallFailed reports that a collective call has failed. The engine also calls Done for each of its messages.
	CallFailed(rank int, err error)
	// TransportError reports that the network failed to send or receive a packet.
	TransportError(rank int, err error)
}

// nopObserver takes the place of a nil Config.Observer, so that the core need not check for nil at each event.
type nopObserver struct{}

func (nopObserver) Dropped(int, int, Drop)    {}
func (nopObserver) Noted(int, int, Note)      {}
func (nopObserver) Done(int, Status, error)   {}
func (nopObserver) CallFailed(int, error)     {}
func (nopObserver) TransportError(int, error) {}
