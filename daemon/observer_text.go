package daemon

import (
	"fmt"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// dropLevel is warn for what a sound peer never sends, and info for what losses
// and repeats bring about.
func dropLevel(r mpe.DropReason, extended bool) zapcore.Level {
	if extended {
		return extendedDropLevel(r)
	}
	switch r {
	case mpe.DropUnexpectedPayload, mpe.DropUnsolicited, mpe.DropDuplicate,
		mpe.DropStale, mpe.DropGap, mpe.DropBarrier:
		return zapcore.InfoLevel
	}
	return zapcore.WarnLevel
}

// eventLevel is warn for what ends messages, error for what corrupts them, info for a
// peer that comes and goes and for what takes a lost packet, and debug for what time
// alone brings about.
func eventLevel(e mpe.Event) zapcore.Level {
	switch e {
	case mpe.EventDeliveredDuplicate, mpe.EventWouldWedge:
		return zapcore.ErrorLevel
	case mpe.EventSessionChanged, mpe.EventUnreachable, mpe.EventRefused:
		return zapcore.WarnLevel
	case mpe.EventReacked, mpe.EventStartedOver, mpe.EventRequestTakenAsAck, mpe.EventConnected, mpe.EventClosedByPeer:
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
		level, text = dropLevel(ln.reason, ln.extended), o.dropped(ln)
		fields = append(fields, zap.Stringer("reason", ln.reason))
	case lineEvent:
		level = eventLevel(ln.event)
		text = fmt.Sprintf("rank %d and rank %d: %s", ln.rank, ln.peer, eventText[ln.event])
		if ln.err != nil {
			text += fmt.Sprintf(": %v", ln.err)
		}
		switch {
		case ln.header.Type != 0:
			text += fmt.Sprintf(" (%v)", ln.header)
		case ln.xheader.Type != 0:
			text += fmt.Sprintf(" (%v)", &ln.xheader)
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
	}
	if ln.suppressed > 0 {
		text = fmt.Sprintf("%s … and %d more", text, ln.suppressed)
	}
	o.log.Log(level, text, fields...)
}

// dropped says what was dropped, from whom, and why.
func (o *Observer) dropped(ln *line) string {
	if ln.extended {
		return extendedDropped(ln)
	}
	h := ln.header
	switch ln.reason {
	case mpe.DropUnknownAddress:
		return fmt.Sprintf("rank %d: packet from %v dropped: that address is not in the rank map", ln.rank, ln.from)
	case mpe.DropSourceRank:
		return fmt.Sprintf("rank %d: packet from %v says it is rank %d, but the rank map says that address is rank %d: the rank maps of the two sides differ",
			ln.rank, ln.from.Addr(), h.Src, ln.peer)
	case mpe.DropDestination:
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
	case mpe.DropShort, mpe.DropStartMark, mpe.DropEndMark,
		mpe.DropReserved, mpe.DropCall, mpe.DropType:
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
	case mpe.DropLength:
		if h.Type != 0 {
			return fmt.Sprintf("%v in a datagram of %d bytes, which is not a length that it can have", h, ln.size)
		}
		return fmt.Sprintf("%d bytes is not a length that a datagram can have here", ln.size)
	case mpe.DropSize:
		return fmt.Sprintf("it announces %d words, which is more than a message may have", h.Size)
	case mpe.DropDirection:
		return fmt.Sprintf("%v makes no sense in a %v packet", h.Call, h.Type)
	case mpe.DropDatatype:
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
var dropText = [mpe.NumDropReasons]string{
	mpe.DropUnexpectedPayload: "bare payload that no message expects",
	mpe.DropUnsolicited:       "it was not cleared to send",
	mpe.DropDuplicate:         "the message was received before",
	mpe.DropStale:             "it answers nothing that is under way",
	mpe.DropGap:               "payload after a pause in which its message must have broken off",
	mpe.DropBarrier:           "deployed nodes ignore BARRIER, and so does zrlmpid",
	mpe.DropStream:            "the stream lost its framing, or another connection from there still answers; it was closed",
}

// eventText describes the events.
var eventText = [mpe.NumEvents]string{
	mpe.EventRetransmitted:        "packet retransmitted",
	mpe.EventReacked:              "an ACK was lost, acknowledged again",
	mpe.EventCrossed:              "both asked to send, the peer goes first",
	mpe.EventRequestTakenAsAck:    "an ACK was lost, but the peer's next request shows that it has the message",
	mpe.EventStaleClearUsed:       "an earlier CLEAR_TO_SEND was used",
	mpe.EventRequestWasDuplicate:  "a SEND_REQUEST was a late duplicate: the peer is in no send",
	mpe.EventClearWasDuplicate:    "a CLEAR_TO_SEND was a late duplicate: the peer is in a send",
	mpe.EventStartedOver:          "part of a message was lost, received from its start again",
	mpe.EventRequestRetransmitted: "the peer asks to send again",
	mpe.EventPadding:              "payload was padded",
	mpe.EventDeliveredDuplicate:   "WRONG DATA was delivered: the message before this one was a late copy of an earlier one, made by the network",
	mpe.EventWouldWedge:           "a real FPGA would now wait for ever or have wrong words",
	mpe.EventConnected:            "connected",
	mpe.EventSessionChanged:       "the peer was restarted, or had given us up: what was under way has ended",
	mpe.EventClosedByPeer:         "the peer shuts down",
	mpe.EventUnreachable:          "the peer is silent: it was given up, and what was under way has ended",
	mpe.EventTimedOut:             "no answer in time",
	mpe.EventSpurious:             "the answer was only late: the path has become longer",
	mpe.EventLossDetected:         "a packet was lost",
	mpe.EventWindowFull:           "as many packets are in flight as may be",
	mpe.EventCreditExhausted:      "a message waits for the peer to match earlier ones",
	mpe.EventEagerExhausted:       "a small message goes by rendezvous, as the peer has no room for it",
	mpe.EventRefused:              "a message of the peer is longer than our limits allow",
}

// moreLine sums up what was suppressed after the last line.
func moreLine(rank int, n uint64, what string) string {
	return fmt.Sprintf("rank %d: … and %d more %s", rank, n, what)
}

func failedText(peer int) string { return fmt.Sprintf("failures with rank %d", peer) }
