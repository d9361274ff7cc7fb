package handshake

import (
	"errors"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// What a stand-in takes and a deployed FPGA does not: the Err of a WouldWedge
// action. After it the FPGA waits forever, or has wrong words in this message or
// in the next. The rules are the traps of section 10 of the protocol page; that of
// a message longer than its receive is a *TruncatedError at a stand-in.
var (
	// errWedgeShort: it reads headers as two halves of 16 bytes, and takes the
	// second one from wherever the next datagram begins.
	errWedgeShort = errors.New("a datagram of 16 bytes or fewer that is no payload: an FPGA takes the next datagram for the rest of its header, from then on always")
	// errWedgeMidMessage: between the datagrams of a message it stores whatever
	// that peer sends.
	errWedgeMidMessage = errors.New("a packet in the middle of a message: an FPGA stores it as payload, and acknowledges wrong words")
	// errWedgeLength: payload is moved in lines of 8 bytes, and counted in
	// words, but nothing compares it with the size.
	errWedgeLength = errors.New("a datagram that does not fit its place in the message: an FPGA stores it all the same, and acknowledges wrong words")
	// errWedgeBrokenOff: its dequeuer goes on counting where it was.
	errWedgeBrokenOff = errors.New("a message broke off: an FPGA takes the next one for the rest of it, and acknowledges wrong words")
	// errWedgeEmpty: it waits for payload behind every DATA header.
	errWedgeEmpty = errors.New("DATA without payload: an FPGA takes the next datagram, whatever it is, for it")
	// errWedgeUnsolicited: what comes between calls with a rank is the first that the
	// next one reads; or it is deferred meanwhile, and a receive that finds it goes
	// to the wait for ACK.
	errWedgeUnsolicited = errors.New("it was not asked for: an FPGA takes it for the answer to its next call, or waits for an ACK in its next receive")
)

// short notes a datagram that is no payload and of which an FPGA reads one half of
// a header.
func (p *Pair) short(b []byte, acts []Action) []Action {
	if len(b) == 0 || len(b) > halfHeader {
		return acts
	}
	return p.wedge(protocol.Header{}, errWedgeShort, acts)
}

// halfHeader is what the deployed MPE reads at once.
const halfHeader = 16

// answersCancelled reports whether h may answer a SEND_REQUEST of a send that has been
// cancelled, or has failed, since: its peer did nothing wrong. Only a stand-in's sends end
// so, not a deployed FPGA's.
func (p *Pair) answersCancelled(h protocol.Header) bool {
	return h.Type == protocol.ClearToSend && p.clearPending
}

// wedge notes that a deployed FPGA would be wedged by what has come. Only a
// stand-in over datagrams does: a host is asked by other rules, and there is no
// FPGA that speaks over a stream.
func (p *Pair) wedge(h protocol.Header, err error, acts []Action) []Action {
	if !p.cfg.Quirks.OneDeferredHeader || p.cfg.Reliable {
		return acts
	}
	return append(acts, Action{Kind: Note, Event: WouldWedge, Header: h, Err: err})
}
