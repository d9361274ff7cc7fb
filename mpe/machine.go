package mpe

import (
	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// A peer's state machine is changed through Engine.pair and Engine.conn alone, because
// any event may change its deadline: both mark the peer as touched, and the end of the
// event (settle, which unlock calls if nothing else has) arms the engine's timer for the
// new deadline. The fields of a peer allow questions only.

// pairState is what a handshake.Pair answers without changing.
type pairState interface {
	Deadline() (handshake.Instant, bool)
	Expects() (offset, left int64, ok bool)
	Deferred() (h protocol.Header, since handshake.Instant, ok bool)
	Received() (packets, bytes [handshake.NumTypes]uint64)
	RecvWait() (handshake.Wait, bool)
	Refuses() error
	SendWait() (handshake.Wait, bool)
	UnansweredClear() (h protocol.Header, since handshake.Instant, ok bool)
}

// connState is what an extended.Conn answers without changing.
type connState interface {
	Busy() bool
	Config() extended.Config
	Deadline() (extended.Instant, bool)
	EachSend(yield func(extended.SendState) bool)
	Expects(header []byte, n int) (m extended.Message, offset int64, ok bool)
	Session() (local, remote protocol.Session)
	Short(length int64) bool
	Stats() extended.Stats
}

// pair returns the state machine of a peer of a handshake, for an event.
func (e *Engine) pair(p *peer) *handshake.Pair {
	e.touch(p)
	return p.pair.(*handshake.Pair)
}

// conn returns the state machine of an extended peer, for an event.
func (e *Engine) conn(p *peer) *extended.Conn {
	e.touch(p)
	return p.conn.(*extended.Conn)
}

// unlock gives the lock back at the end of an event, and ends the event if that was not
// done. Sends that wait for company stay touched.
func (e *Engine) unlock() {
	if len(e.touched) > 0 && !e.corked.Load() && e.state != closed {
		e.settle()
	}
	e.mu.Unlock()
}
