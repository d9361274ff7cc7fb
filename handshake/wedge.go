package handshake

import (
	"errors"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// These errors appear in WouldWedge notes. They describe packets that a stand-in can handle and a deployed FPGA cannot:
// after such a packet, the FPGA waits forever, or stores wrong words in this message or the next. Section 10 of the
// protocol page lists these traps. For one of them, a message longer than its receive, a stand-in returns a
// *TruncatedError instead.
var (
	// errWedgeShort: an FPGA reads a header in two halves of 16 bytes, and takes the beginning of the next datagram for
	// the second half.
	errWedgeShort = errors.New("a datagram of 16 bytes or fewer that is not payload: an FPGA takes the next datagram " +
		"for the rest of its header, from then on always")
	// errWedgeMidMessage: between the datagrams of a message, an FPGA stores every packet from the same peer as
	// payload.
	errWedgeMidMessage = errors.New("a packet in the middle of a message: an FPGA stores it as payload, and " +
		"acknowledges wrong words")
	// errWedgeLength: an FPGA moves payload in lines of 8 bytes and counts it in words, but does not compare the count
	// with the size.
	errWedgeLength = errors.New("a datagram whose length is wrong for its position in the message: an FPGA stores it " +
		"nevertheless, and acknowledges wrong words")
	// errWedgeBrokenOff: an FPGA's dequeuer keeps its count of lines when a message is interrupted.
	errWedgeBrokenOff = errors.New("a message was interrupted: an FPGA takes the next one for the rest of it, and " +
		"acknowledges wrong words")
	// errWedgeEmpty: an FPGA waits for payload after every DATA header.
	errWedgeEmpty = errors.New("DATA without payload: an FPGA takes the next datagram, whatever it is, for it")
	// errWedgeUnsolicited: a packet that arrives between two calls with a rank is the first packet that the next call
	// reads. Or the FPGA defers it, and a receive that finds it starts to wait for an ACK.
	errWedgeUnsolicited = errors.New("it was not asked for: an FPGA takes it for the answer to its next call, or " +
		"waits for an ACK in its next receive")
)

// noteShort notes a datagram that is not payload and is so short that an FPGA reads only half a header from it.
func (p *Pair) noteShort(b []byte, acts []Action) []Action {
	if len(b) == 0 || len(b) > halfHeaderLen {
		return acts
	}
	return p.noteWedge(protocol.Header{}, errWedgeShort, acts)
}

// halfHeaderLen is half the length of a header, which is the number of bytes that the deployed MPE reads at a time.
const halfHeaderLen = 16

// answersCancelled reports whether the packet with header h may answer the SEND_REQUEST of a send that was canceled or
// failed. Such an answer is no mistake of the peer, because a stand-in's send can end like that, although a deployed
// FPGA's cannot.
func (p *Pair) answersCancelled(h protocol.Header) bool {
	return h.Type == protocol.ClearToSend && p.clearPending
}

// noteWedge notes that a packet would wedge a deployed FPGA. It does so only for a stand-in over datagrams, because a
// host follows other rules and no FPGA uses a stream.
func (p *Pair) noteWedge(h protocol.Header, err error, acts []Action) []Action {
	if !p.cfg.Quirks.OneDeferredHeader || p.cfg.Reliable {
		return acts
	}
	return append(acts, Action{Kind: Note, Event: WouldWedge, Header: h, Err: err})
}
