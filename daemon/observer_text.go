package daemon

import (
	"fmt"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// dropLevel is warn for what a sound peer never sends, and info for what losses
// and repeats bring about.
func dropLevel(r handshake.Reason) zapcore.Level {
	switch r {
	case handshake.ReasonUnexpectedPayload, handshake.ReasonUnsolicited, handshake.ReasonDuplicate,
		handshake.ReasonStale, handshake.ReasonGap, handshake.ReasonBarrier:
		return zapcore.InfoLevel
	}
	return zapcore.WarnLevel
}

// eventLevel is info for what takes a lost packet, and debug for what time alone
// brings about.
func eventLevel(e handshake.Event) zapcore.Level {
	switch e {
	case handshake.DeliveredDuplicate, handshake.WouldWedge:
		return zapcore.ErrorLevel
	case handshake.Reacked, handshake.StartedOver, handshake.RequestTakenAsAck:
		return zapcore.InfoLevel
	}
	return zapcore.DebugLevel
}

// write logs one line.
func (o *Observer) write(ln *line) {
	if ln.kind == lineAttach {
		o.writeProgram(ln)
		return
	}
	fields := []zap.Field{zap.Int("rank", ln.rank)}
	if ln.kind != lineNetwork && ln.peer != mpe.UnknownPeer {
		fields = append(fields, zap.Int("peer", ln.peer))
	}
	level, text := zapcore.WarnLevel, ""
	switch ln.kind {
	case lineDrop:
		level, text = dropLevel(ln.reason), o.dropped(ln)
		fields = append(fields, zap.Stringer("reason", ln.reason))
	case lineEvent:
		level = eventLevel(ln.event)
		text = fmt.Sprintf("rank %d and rank %d: %s", ln.rank, ln.peer, eventText[ln.event])
		if ln.err != nil {
			text += fmt.Sprintf(": %v", ln.err)
		}
		if ln.header.Type != 0 {
			text += fmt.Sprintf(" (%v)", ln.header)
		}
		fields = append(fields, zap.Stringer("event", ln.event))
	case lineFailed:
		way := "receive from"
		if ln.send {
			way = "send to"
		}
		who := fmt.Sprintf("rank %d", ln.peer)
		if ln.peer < 0 {
			who = "any rank"
		}
		text = fmt.Sprintf("rank %d: %s %s failed: %v", ln.rank, way, who, ln.err)
	case lineNetwork:
		text = ln.err.Error() // it names the rank
	case lineExtendedDrop:
		level, text = extendedDropLevel(ln.xreason), extendedDropped(ln)
		fields = append(fields, zap.Stringer("reason", ln.xreason))
	case lineExtendedEvent:
		level = extendedEventLevel(ln.xevent)
		text = fmt.Sprintf("rank %d and rank %d: %s", ln.rank, ln.peer, extendedEventText[ln.xevent])
		if ln.xheader.Type != 0 {
			text += fmt.Sprintf(" (%v)", &ln.xheader)
		}
		fields = append(fields, zap.Stringer("event", ln.xevent))
	}
	if ln.suppressed > 0 {
		text = fmt.Sprintf("%s … and %d more", text, ln.suppressed)
	}
	o.log.Log(level, text, fields...)
}

// dropped says what was dropped, from whom, and why.
func (o *Observer) dropped(ln *line) string {
	h := ln.header
	switch ln.reason {
	case handshake.ReasonUnknownAddress:
		return fmt.Sprintf("rank %d: packet from %v dropped: that address is not in the rank map", ln.rank, ln.from)
	case handshake.ReasonSourceRank:
		return fmt.Sprintf("rank %d: packet from %v says it is rank %d, but the rank map says that address is rank %d: the rank maps of the two sides differ",
			ln.rank, ln.from.Addr(), h.Src, ln.peer)
	case handshake.ReasonDestination:
		return fmt.Sprintf("rank %d: packet from rank %d is addressed to rank %d, but this is rank %d: the rank maps of the two sides differ",
			ln.rank, ln.peer, h.Dst, ln.rank)
	}
	from := fmt.Sprintf("rank %d", ln.peer)
	if ln.from.IsValid() {
		from = fmt.Sprintf("rank %d (%v)", ln.peer, ln.from)
	}
	return fmt.Sprintf("rank %d: packet from %s dropped: %s", ln.rank, from, o.why(ln))
}

// why explains a drop that is not about addresses.
func (o *Observer) why(ln *line) string {
	h := ln.header
	switch ln.reason {
	case handshake.ReasonShort, handshake.ReasonStartMark, handshake.ReasonEndMark,
		handshake.ReasonReserved, handshake.ReasonCall, handshake.ReasonType:
		profile := o.profile(ln.rank, ln.peer)
		_, defect := profile.Parse(ln.head[:min(max(ln.size, 0), len(ln.head))])
		if defect.OK() {
			break
		}
		text := defect.Err().Error()
		if profile == protocol.CloudFPGA && defect.Kind == protocol.DefectReserved && defect.Offset == 18 {
			text += "; a peer that sends tags follows the protocol page: set profile: v0.9 for it"
		}
		return text
	case handshake.ReasonLength:
		if h.Type != 0 {
			return fmt.Sprintf("%v in a datagram of %d bytes, which is not a length that it can have", h, ln.size)
		}
		return fmt.Sprintf("%d bytes is not a length that a datagram can have here", ln.size)
	case handshake.ReasonSize:
		return fmt.Sprintf("it announces %d words, which is more than a message may have", h.Size)
	case handshake.ReasonDirection:
		return fmt.Sprintf("%v makes no sense in a %v packet", h.Call, h.Type)
	case handshake.ReasonDatatype:
		return fmt.Sprintf("%v does not match what is posted: one side uses INT and the other FLOAT, or the tags differ", h)
	}
	if text := dropText[ln.reason]; text != "" {
		if h.Type != 0 {
			text = fmt.Sprintf("%v: %s", h, text)
		}
		return text
	}
	return ln.reason.String()
}

// dropText explains the reasons that need no more.
var dropText = [handshake.NumReasons]string{
	handshake.ReasonUnexpectedPayload:     "bare payload that no message expects",
	handshake.ReasonUnsolicited:   "it was not cleared to send",
	handshake.ReasonDuplicate: "the message was received before",
	handshake.ReasonStale:     "it answers nothing that is under way",
	handshake.ReasonGap:       "payload after a pause in which its message must have broken off",
	handshake.ReasonBarrier:   "deployed nodes ignore BARRIER, and so does zrlmpid",
	handshake.ReasonStream:    "the stream lost its framing, or another connection from there still answers; it was closed",
}

// eventText describes the events.
var eventText = [handshake.NumEvents]string{
	handshake.Retransmitted:        "no answer in time, sent again",
	handshake.Reacked:              "an ACK was lost, acknowledged again",
	handshake.Crossed:              "both asked to send, the peer goes first",
	handshake.RequestTakenAsAck:    "an ACK was lost, but the peer's next request shows that it has the message",
	handshake.StaleClearUsed:       "an earlier CLEAR_TO_SEND was used",
	handshake.RequestWasDuplicate:  "a SEND_REQUEST was a late duplicate: the peer is in no send",
	handshake.ClearWasDuplicate:    "a CLEAR_TO_SEND was a late duplicate: the peer is in a send",
	handshake.StartedOver:          "part of a message was lost, received from its start again",
	handshake.RequestRetransmitted: "the peer asks to send again",
	handshake.Padding:              "payload was padded",
	handshake.DeliveredDuplicate:   "WRONG DATA was delivered: the message before this one was a late copy of an earlier one, made by the network",
	handshake.WouldWedge:           "a real FPGA would now wait for ever or have wrong words",
}

// moreLine sums up what was suppressed after the last line.
func moreLine(rank int, n uint64, what string) string {
	return fmt.Sprintf("rank %d: … and %d more %s", rank, n, what)
}

func failedText(peer int) string { return fmt.Sprintf("failures with rank %d", peer) }
