package capture

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// revocation returns the type and number of the packet that h revokes (P28). ok is false if h revokes none.
func revocation(h protocol.Header) (revoked protocol.Type, number uint32, ok bool) {
	ok = h.Call == protocol.Barrier && h.Size > 0 && (h.Type == protocol.SendRequest || h.Type == protocol.ClearToSend)
	return h.Type, h.Size - 1, ok
}

// revocationText names the packet that the event's packet revokes, or returns "".
func (e *Event) revocationText() string {
	if e.Extended != nil {
		return ""
	}
	revoked, number, ok := revocation(e.Header)
	if !ok {
		return ""
	}
	return fmt.Sprintf("revokes %v, number %d", revoked, number)
}

// onRequestRevoked handles the revocation of a SEND_REQUEST: its sender no longer sends the message.
func (f *flow) onRequestRevoked(e *Event) {
	f.reportUnsolicited()
	f.minNumber = max(f.minNumber, e.Header.Size)
	m := f.msg
	if m == nil || m.requestNumber >= e.Header.Size { // a repetition, because the peer answered the revoked request
		e.Reason = handshake.ReasonStale
		return
	}
	m.addStep(e, "SEND_REQUEST revoked", true, false)
	m.setProblem("withdrawn by its sender")
	m.requestRevoked = true
	// A shorter wait means that the program changed its mind.
	if waited := e.Time.Sub(m.request); m.state == requested && waited >= duplicateWindow {
		f.tracker.addFinding(NeverCleared, e, "message %d from rank %d to rank %d: its sender withdrew it after %v without "+
			"CLEAR_TO_SEND: %s", m.ID, m.Src, m.Dst, handshake.Round(waited), m.unclearedReasons()).relateTo(m, m.firstPacket,
			e.Packet)
	}
	f.endMessage(m, e, false)
}

// unclear handles the revocation of a CLEAR_TO_SEND: the receive was canceled, and the sender requests again with the
// next number.
func (f *flow) onClearRevoked(e *Event) {
	f.reportUnsolicited()
	m := f.msg
	if m == nil || m.requestNumber >= e.Header.Size || m.state == requested {
		e.Reason = handshake.ReasonStale
		return
	}
	m.addStep(e, "CLEAR_TO_SEND revoked", false, false)
	m.state, m.requestNumber, m.clearRevoked = requested, e.Header.Size, true
	f.pair = nil
}
