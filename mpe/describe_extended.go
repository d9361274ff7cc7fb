package mpe

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// sendState returns where a send to an extended peer stands.
func (p *peer) sendState(id extended.ID) (st extended.SendState) {
	p.conn.EachSend(func(s extended.SendState) bool {
		if s.ID == id {
			st = s
			return false
		}
		return true
	})
	return st
}

// describeExtendedSend says what a send waits for.
func (e *Engine) describeExtendedSend(w *WaitError, r *Request, now handshake.Instant) {
	st := r.p.sendState(r.out)
	w.Wait = sendWait(st)
	w.text = r.p.describeSend(st, now)
}

// sendWait translates a state of the extended profile for those who know the
// handshake's.
func sendWait(st extended.SendState) handshake.Wait {
	w := handshake.Wait{
		Local: st.Local, Remote: st.Remote, Since: st.Since, Retransmissions: st.Retransmissions, Words: wordsOf(st.Length), Got: st.Done,
	}
	switch st.State {
	case extended.WaitClear, extended.Canceling:
		w.State, w.For = handshake.WaitClear, protocol.ClearToSend
	case extended.Eager, extended.Sending:
		w.State, w.For = handshake.WaitAck, protocol.Ack
	default:
		w.State = handshake.Held
	}
	return w
}

func (p *peer) describeSend(st extended.SendState, now handshake.Instant) string {
	since := handshake.Round(now - st.Since)
	switch st.State {
	case extended.WaitClear:
		return fmt.Sprintf("rank %d waits since %v for rank %d to post the receive of %d bytes with tag %d", st.Local, since, st.Remote, st.Length, st.Tag)
	case extended.Canceling:
		return fmt.Sprintf("rank %d waits since %v for rank %d to agree that a message of %d bytes is taken back", st.Local, since, st.Remote, st.Length)
	case extended.Eager, extended.Sending:
		return fmt.Sprintf("rank %d waits since %v for ACK from rank %d (%d of %d bytes are acknowledged)", st.Local, since, st.Remote, st.Done, st.Length)
	}
	if _, remote := p.conn.Session(); remote == 0 {
		return fmt.Sprintf("rank %d has had no answer from rank %d since %v: it is not running, or not at its address, or not told profile extended", st.Local, st.Remote, since)
	}
	if p.conn.Stats().MessageCredit == 0 {
		return fmt.Sprintf("rank %d holds a send to rank %d back since %v: as many of its messages as rank %d allows wait there for receives", st.Local, st.Remote, since, st.Remote)
	}
	return fmt.Sprintf("rank %d holds a send to rank %d back, behind others, since %v", st.Local, st.Remote, since)
}

// describeExtendedRecv says what a matched receive waits for.
func (e *Engine) describeExtendedRecv(w *WaitError, in *inbound, now handshake.Instant) {
	w.Wait = e.recvWait(in)
	w.Network = in.p.sendErr
	w.text = w.Describe(now)
}

func (e *Engine) recvWait(in *inbound) handshake.Wait {
	return handshake.Wait{
		State: handshake.Receiving, For: protocol.Data, Local: uint32(e.rank), Remote: uint32(in.source),
		Since: in.phases.Start, Words: wordsOf(in.bytes), Got: in.stored,
	}
}

// whyNothingComes adds what is known of a peer from which a message is awaited.
func (p *peer) whyNothingComes() string {
	if _, remote := p.conn.Session(); remote == 0 {
		return fmt.Sprintf("; rank %d has not been heard of", p.rank)
	}
	return ""
}
