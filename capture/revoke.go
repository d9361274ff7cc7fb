package capture

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// revocation returns the type and number of the packet that header h revokes (P28). ok is false if h revokes no packet.
func revocation(h protocol.Header) (revoked protocol.Type, number uint32, ok bool) {
	ok = h.Call == protocol.Barrier && h.Size > 0 && (h.Type == protocol.SendRequest || h.Type == protocol.ClearToSend)
	return h.Type, h.Size - 1, ok
}

// revocationText names the packet that the event's packet revokes. It returns "" if there is none.
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

// onRequestRevoked handles the revocation of a SEND_REQUEST, by which the sender withdraws the message.
func (f *flow) onRequestRevoked(event *Event) {
	f.reportUnsolicited()
	f.minNumber = max(f.minNumber, event.Header.Size)
	msg := f.msg
	// The sender retransmits the revocation if the peer answers the revoked request.
	if msg == nil || msg.requestNumber >= event.Header.Size {
		event.Reason = handshake.ReasonStale
		return
	}
	msg.addStep(event, "SEND_REQUEST revoked", true, false)
	msg.setProblem("withdrawn by its sender")
	msg.requestRevoked = true
	// A sender that waited for less time has merely changed its mind, so there is nothing to report.
	if waited := event.Time.Sub(msg.request); msg.state == requested && waited >= duplicateWindow {
		f.tracker.addFinding(NeverCleared, event,
			"message %d from rank %d to rank %d: its sender withdrew it after %v without "+
				"CLEAR_TO_SEND: %s", msg.ID, msg.Src, msg.Dst, handshake.Round(waited), msg.unclearedReasons()).relateTo(msg,
			msg.firstPacket,
			event.Packet)
	}
	f.endMessage(msg, event, false)
}

// onClearRevoked handles the revocation of a CLEAR_TO_SEND: the receive was canceled, and the sender requests again
// with the next number.
func (f *flow) onClearRevoked(event *Event) {
	f.reportUnsolicited()
	msg := f.msg
	if msg == nil || msg.requestNumber >= event.Header.Size || msg.state == requested {
		event.Reason = handshake.ReasonStale
		return
	}
	msg.addStep(event, "CLEAR_TO_SEND revoked", false, false)
	msg.state, msg.requestNumber, msg.clearRevoked = requested, event.Header.Size, true
	f.pair = nil
}
