package core

// Observer is notified of what happens in an engine. Its methods are called with the
// engine's lock held: they must be quick, must not block and must not call the
// engine.
type Observer interface {
	// Dropped: something that arrived was not used. peer is UnknownPeer if
	// its address is no rank's.
	Dropped(rank, peer int, d Drop)
	// Noted: an event with peer.
	Noted(rank, peer int, n Note)
	// Done: a message ended, with err or without.
	Done(rank int, s Status, err error)
	// CallFailed: a collective call ended with err. Done is called for its messages.
	CallFailed(rank int, err error)
	// TransportError: the network refused to send or to receive.
	TransportError(rank int, err error)
}

type nopObserver struct{}

func (nopObserver) Dropped(int, int, Drop)    {}
func (nopObserver) Noted(int, int, Note)      {}
func (nopObserver) Done(int, Status, error)   {}
func (nopObserver) CallFailed(int, error)     {}
func (nopObserver) TransportError(int, error) {}
