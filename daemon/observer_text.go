package daemon

import (
	"cmp"
	"errors"
	"fmt"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/zrlmpi/zrlmpid/daemon/attach"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// dropLevel returns warn for packets that a correct peer never sends, and info for packets dropped due to packet loss
// or retransmission.
func dropLevel(r state.DropReason, extended bool) zapcore.Level {
	if extended {
		return extendedDropLevel(r)
	}
	switch r {
	case state.DropUnexpectedPayload, state.DropUnsolicited, state.DropDuplicate,
		state.DropStale, state.DropGap, state.DropBarrier:
		return zapcore.InfoLevel
	}
	return zapcore.WarnLevel
}

// eventLevel returns error for wrong data and wedged FPGAs; warn for events that fail messages or suggest wrong data;
// info for effects of packet loss and for peers that connect or close; and debug for timeouts, retransmissions and flow
// control.
func eventLevel(e state.Event) zapcore.Level {
	switch e {
	case state.EventDeliveredDuplicate, state.EventWouldWedge:
		return zapcore.ErrorLevel
	case state.EventSecondData, state.EventClearAfterDone,
		state.EventSessionChanged, state.EventProcessEnded, state.EventUnreachable, state.EventRefused:
		return zapcore.WarnLevel
	case state.EventReacked, state.EventStartedOver, state.EventWithdrawn, state.EventDiscarded,
		state.EventRequestTakenAsAck,
		state.EventResumed, state.EventConnected, state.EventClosedByPeer:
		return zapcore.InfoLevel
	}
	return zapcore.DebugLevel
}

// describe returns the level and the message for lines with the given topic. It also returns a field that holds the
// drop reason or the event.
func (t topic) describe() (level zapcore.Level, text string, of zap.Field) {
	switch t.kind {
	case lineDrop:
		r := state.DropReason(t.code)
		return dropLevel(r, t.extended), packetDropped, zap.Stringer("reason", r)
	case lineEvent:
		e := state.Event(t.code)
		return eventLevel(e), eventText[e], zap.Stringer("event", e)
	case lineFailed:
		return zapcore.WarnLevel, operationFailed, zap.Skip()
	case lineNetwork:
		return zapcore.WarnLevel, networkError, zap.Skip()
	case lineControl:
		return zapcore.WarnLevel, requestRefused, zap.Skip()
	}
	level = zapcore.InfoLevel
	if attach.EventKind(t.code) == attach.EventFailed {
		level = zapcore.WarnLevel
	}
	return level, attachText[t.code], zap.Skip()
}

// rankField returns a field for rank n, or an empty field if n is negative.
func rankField(key string, n int) zap.Field {
	if n < 0 {
		return zap.Skip()
	}
	return zap.Int(key, n)
}

// suppressedField returns a field for n suppressed lines, or an empty field if n is 0.
func suppressedField(n uint64) zap.Field {
	if n == 0 {
		return zap.Skip()
	}
	return zap.Uint64("suppressed", n)
}

// write logs one line.
func (o *Observer) write(ln *logLine) {
	level, text, of := ln.topic.describe()
	fields := []zap.Field{rankField("rank", ln.topic.rank), rankField("peer", ln.peer)}
	if ln.from.IsValid() {
		fields = append(fields, zap.Stringer("from", ln.from))
	}
	if ln.header.Type != 0 {
		fields = append(fields, zap.Stringer("packet", ln.header))
	} else if ln.extHeader.Type != 0 {
		fields = append(fields, zap.Stringer("packet", &ln.extHeader))
	}
	fields = append(fields, of)
	switch event := &ln.program; ln.topic.kind {
	case lineDrop:
		fields = append(fields, zap.String("detail", o.dropDetail(ln)))
	case lineFailed:
		if text = receiveFailed; ln.send {
			text = sendFailed
		}
	case lineAttach:
		if event.Rank >= 0 {
			fields = append(fields, zap.Int("pid", event.PID), zap.Int("uid", event.UID))
		}
		if refused, ok := errors.AsType[*wire.RefusedError](event.Err); ok {
			fields = append(fields, zap.String("reason", refused.Text))
		} else if event.Err != nil {
			fields = append(fields, zap.String("reason", event.Err.Error()))
		}
	}
	fields = append(fields, zap.Error(ln.err))
	o.log.Log(level, text, append(fields, suppressedField(ln.suppressed))...)
}

// Log messages that appear in no table.
const (
	packetDropped   = "packet dropped"
	sendFailed      = "send failed"
	receiveFailed   = "receive failed"
	operationFailed = "operation failed"
	networkError    = "network error"
	requestRefused  = "request refused"
)

// dropDetail explains why a packet was dropped and gives advice.
func (o *Observer) dropDetail(ln *logLine) string {
	reason, header := state.DropReason(ln.topic.code), ln.header
	if ln.topic.extended {
		switch {
		case reason == state.DropReserved:
			return foreignVersion(ln)
		case reason == state.DropUnsolicited && ln.extHeader.Type != protocol.Data:
			return fmt.Sprintf("%v about a message that has not begun", ln.extHeader.Type)
		}
		return cmp.Or(extendedDropText[reason], reason.String())
	}
	if ln.reason != "" {
		return "connection closed: " + ln.reason
	}
	head := ln.headerBytes[:min(max(ln.size, 0), len(ln.headerBytes))]
	if protocol.IsExtended(head) {
		return fmt.Sprintf("packet of profile extended, and profile %v is configured for rank %d here: give both "+
			"sides the same profile", o.profile(ln.topic.rank, ln.peer), ln.peer)
	}
	switch reason {
	case state.DropSourceRank:
		return fmt.Sprintf("packet claims source rank %d, but its address belongs to rank %d: compare the rank maps "+
			"of both sides", header.Src, ln.peer)
	case state.DropDestination:
		return fmt.Sprintf("packet is addressed to rank %d, not to rank %d: compare the rank maps of both sides", header.Dst,
			ln.topic.rank)
	case state.DropShort, state.DropStartMark, state.DropEndMark,
		state.DropReserved, state.DropCall, state.DropType:
		profile := o.profile(ln.topic.rank, ln.peer)
		_, defect := profile.Parse(head)
		if defect.OK() {
			break
		}
		text := defect.Err().Error()
		if profile == protocol.CloudFPGA && defect.Kind == protocol.DefectReserved && defect.Offset == 18 {
			text += "; a peer that sends tags follows the protocol page: set profile: v0.9 for it"
		}
		return text
	case state.DropLength:
		return fmt.Sprintf("invalid datagram length of %d bytes", ln.size)
	case state.DropSize:
		return fmt.Sprintf("message of %d words exceeds the limit", header.Size)
	case state.DropDirection:
		return fmt.Sprintf("invalid call %v in a %v packet", header.Call, header.Type)
	}
	return cmp.Or(dropText[reason], reason.String())
}

// dropText contains the explanation of each drop reason whose text is constant.
var dropText = [state.NumDropReasons]string{
	state.DropUnknownAddress: "address is not in the rank map",
	state.DropDatatype: "call does not match the posted operation: one side uses INT and the other FLOAT, " +
		"or the tags differ",
	state.DropUnexpectedPayload: "continuation datagram that no message expects",
	state.DropUnsolicited:       "DATA without CLEAR_TO_SEND",
	state.DropDuplicate:         "message was received before",
	state.DropStale:             "packet matches no pending operation",
	state.DropGap:               "payload after a pause that ended its message",
	state.DropBarrier:           "BARRIER is not supported, as on deployed nodes",
	state.DropStream:            "connection closed: its stream was invalid",
}

// attachText contains the log message for each kind of program event.
var attachText = [attach.NumEventKinds]string{
	attach.EventAttached: "program attached",
	attach.EventDetached: "program detached",
	attach.EventRefused:  "program refused",
	attach.EventFailed:   "program connection not accepted",
}

// eventText contains the log message for each engine event.
var eventText = [state.NumEvents]string{
	state.EventRetransmitted:        "packet retransmitted",
	state.EventReacked:              "ACK retransmitted",
	state.EventCrossed:              "crossed send requests, peer sends first",
	state.EventRequestTakenAsAck:    "lost ACK replaced by a repeated SEND_REQUEST",
	state.EventStaleClearUsed:       "earlier CLEAR_TO_SEND used",
	state.EventRequestWasDuplicate:  "late duplicate of a SEND_REQUEST ignored",
	state.EventClearWasDuplicate:    "late duplicate of a CLEAR_TO_SEND ignored",
	state.EventStartedOver:          "incomplete message received again from its start",
	state.EventRequestRetransmitted: "SEND_REQUEST retransmitted by the peer",
	state.EventPadding:              "padding of payload removed",
	state.EventDeliveredDuplicate:   "WRONG DATA delivered: previous message was a late duplicate from the network",
	state.EventEarlyData:            "DATA sooner than any round trip, held back because it may be a late duplicate",
	state.EventEarlyAck:             "ACK sooner than any round trip, held back because it may be a late duplicate",
	state.EventClearAfterDone: "CLEAR_TO_SEND repeated after its message was acknowledged, which may not have " +
		"arrived",
	state.EventSecondData: "second DATA for one CLEAR_TO_SEND, the message delivered or this one is a late " +
		"duplicate",
	state.EventRepeatedContent: "message equals a recent one of its sender",
	state.EventResumed:         "message received that an earlier process of this rank had cleared",
	state.EventWouldWedge:      "real FPGA would wait forever or have wrong data",
	state.EventWithdrawn:       "SEND_REQUEST withdrawn by the peer",
	state.EventDiscarded:       "message discarded, its receive or call was aborted or its program ended",
	state.EventConnected:       "peer connected",
	state.EventSessionChanged:  "peer restarted or declared this rank unreachable, pending messages failed",
	state.EventClosedByPeer:    "connection closed by peer",
	state.EventProcessEnded:    "process of the peer ended, pending messages failed",
	state.EventUnreachable:     "peer unreachable, pending messages failed",
	state.EventTimedOut:        "retransmission timeout",
	state.EventSpurious:        "spurious retransmission timeout, round trip has grown",
	state.EventLossDetected:    "packet loss detected",
	state.EventWindowFull:      "congestion window full",
	state.EventCreditExhausted: "message credit exhausted",
	state.EventEagerExhausted:  "eager credit exhausted, message sent by rendezvous",
	state.EventRefused:         "message of the peer refused: longer than the limits allow",
	state.EventBlackHole:       "path no longer carries long packets",
}
