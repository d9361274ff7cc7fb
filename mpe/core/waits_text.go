package core

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// The words for waits, for status, warnings and errors.

// finishWait sets Elapsed and Text.
func finishWait(e *Core, w *Waiting) {
	w.Elapsed = e.at - w.Since
	w.Text = explain(e, w, w.Since)
	switch {
	case w.req != nil && w.req.message != nil:
		w.Text += w.req.message.OfCall()
	case w.detached() && w.req != nil && w.req.discards:
		w.Text += ", of a program that has ended"
	case w.detached():
		w.Text += ", for a call that was cancelled"
	}
}

// explain puts a wait into words, as of now. As of its beginning, its age is left out.
func explain(e *Core, w *Waiting, now handshake.Instant) string {
	var s string
	switch {
	case w.of != "":
		s = fmt.Sprintf("rank %d %s rank %d%s", w.Local, handshake.WaitsFor(now-w.Since), w.Remote, w.of)
	case w.peer != nil && w.peer.extended != nil:
		s = explainExtended(w.peer.extended, w, now)
	case w.peer != nil:
		s = explainHandshake(w.peer.handshake, w, now)
	case w.Posted:
		s = explainPosted(w, now)
	default:
		s = fmt.Sprintf("rank %d has sent itself a message with tag %d, and %s a receive of it", e.rank, w.req.tag, handshake.WaitsFor(now-w.Since))
	}
	if w.Queued > 0 {
		others := "others"
		if w.Queued == 1 {
			others = "other"
		}
		if now > w.Since {
			others += fmt.Sprintf(" for %v", handshake.Round(now-w.req.posted))
		}
		s = fmt.Sprintf("queued behind %d %s, and %s", w.Queued, others, s)
	}
	return s
}

// explainPosted puts into words that no message has matched a receive.
func explainPosted(w *Waiting, now handshake.Instant) string {
	r := w.req
	m := Match{Source: r.peer, Tag: int(r.tag), Comm: r.comm}
	of := ""
	if r.message != nil { // the tag says nothing to a reader: see E51
		m.Tag, m.Comm, of = AnyTag, 0, r.message.Of()
	}
	return fmt.Sprintf("rank %d %s a message%s%s", w.Local, handshake.WaitsFor(now-w.Since), DescribeMatch(m), of)
}

// explainHandshake puts a wait for a peer of the cloudfpga or v0.9 profile into words.
func explainHandshake(l *handshakeLink, w *Waiting, now handshake.Instant) string {
	s := w.Describe(now) + silence(l, w)
	switch {
	case w.State == handshake.Held && l.recving != nil && l.recving.discards:
		return s + ", for an operation that was aborted: it is discarded"
	case w.Queued > 0 && l.sending != nil && l.sending.discards:
		return s + ", of a program that has ended"
	case !w.Posted:
		return s
	}
	if l.recving != nil { // the receive is behind that one
		ahead, _ := l.pair.RecvWait()
		if now == w.Since { // without ages
			now = ahead.Since
		}
		s = ahead.Describe(now)
		if l.recving.discards {
			s += ", for an operation that was aborted: it is discarded"
		}
		return s
	}
	return s
}

// silence says what is known of a peer whose packets do not arrive, or are of another profile.
func silence(l *handshakeLink, w *Waiting) string {
	p := l.p
	switch {
	case l.foreign:
		return fmt.Sprintf("; rank %d sends packets of profile extended, and profile %v is configured for it here: give both sides the same profile", p.rank, p.profile)
	case p.packetsIn > 0 || p.cfg.Address == "" || w.State == handshake.Held:
		return ""
	case w.Send:
		return fmt.Sprintf("; no packet has ever come from %s: not running, other address, or firewall", p.cfg.Address)
	}
	s := "; no packet has ever come from " + p.cfg.Address
	if l.keeper != nil && p.cfg.Handshake.Peer.OneAtATime {
		s += fmt.Sprintf(". If rank %d asked to send before this process started, it asks no more: restart its role "+
			"or program", p.rank)
	}
	return s
}

// explainExtended puts a wait for a peer of the extended profile into words.
func explainExtended(l *extendedLink, w *Waiting, now handshake.Instant) string {
	switch {
	case w.Send:
		return explainSend(l, w, now)
	case !w.Posted:
		return w.Describe(now)
	}
	s := explainPosted(w, now)
	switch _, remote := l.conn.Session(); {
	case remote != 0:
	case l.conn.ForeignVersion() != 0:
		s += "; " + explainVersion(l)
	default:
		s += fmt.Sprintf("; rank %d has sent nothing", l.p.rank)
	}
	return s
}

// explainVersion says what the versions of both sides are, and what to do.
func explainVersion(l *extendedLink) string {
	return fmt.Sprintf("rank %d speaks version 0x%02x of the extended profile, and this rank version 0x%02x: use the same release of zrlmpid for both",
		l.p.rank, l.conn.ForeignVersion(), protocol.ExtVersion)
}

func explainSend(l *extendedLink, w *Waiting, now handshake.Instant) string {
	st := &w.send
	waitsFor, holds := handshake.WaitsFor(now-st.Since), handshake.HoldsSend(st.Remote, now-st.Since)
	switch st.State {
	case extended.WaitClear:
		of := fmt.Sprintf(" with tag %d", st.Tag)
		if w.req != nil && w.req.message != nil {
			of = w.req.message.Of()
		}
		return fmt.Sprintf("rank %d %s rank %d to post the receive of %d bytes%s", st.Local, waitsFor, st.Remote, st.Length, of)
	case extended.Canceling:
		return fmt.Sprintf("rank %d %s rank %d to confirm that a message of %d bytes is cancelled", st.Local, waitsFor, st.Remote, st.Length)
	case extended.Eager, extended.Sending:
		return fmt.Sprintf("rank %d %s ACK from rank %d (%d of %d bytes are acknowledged)", st.Local, waitsFor, st.Remote, st.Done, st.Length)
	}
	if _, remote := l.conn.Session(); remote == 0 {
		if l.conn.ForeignVersion() != 0 {
			return fmt.Sprintf("rank %d %s an answer from rank %d: %s", st.Local, waitsFor, st.Remote, explainVersion(l))
		}
		return fmt.Sprintf("rank %d %s an answer from rank %d: it is not running, or not at its address, or not configured for profile extended", st.Local, waitsFor, st.Remote)
	}
	if l.conn.Stats().MessageCredit == 0 {
		return fmt.Sprintf("rank %d %s: as many of its messages as rank %d allows wait there for receives", st.Local, holds, st.Remote)
	}
	return fmt.Sprintf("rank %d %s, behind others", st.Local, holds)
}

// leavesOpen says what a send of a profile without cancellation leaves at its peer when it ends
// after its SEND_REQUEST: a deployed node keeps that, and answers it when it receives.
func (w *Waiting) leavesOpen() string {
	if !w.Send || w.State != handshake.WaitClear || w.Queued > 0 || w.peer == nil ||
		w.peer.extended != nil || w.peer.cfg.Handshake.Peer.Numbered { // which is informed
		return ""
	}
	return fmt.Sprintf("rank %d keeps the SEND_REQUEST if it has arrived: when it receives from rank %d, it waits for DATA until rank %d sends another message of this datatype: send one, or restart its program or role",
		w.Remote, w.Local, w.Local)
}
