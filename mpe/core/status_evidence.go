package core

import (
	"net/netip"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// maxUnmatched is the maximum length of state.Peer.Unmatched.
const maxUnmatched = 4

// envelope returns the envelope of a waiting operation: the attributes by which receives match messages.
func envelope(w *Waiting) state.Envelope {
	request := w.req
	if request == nil { // detached, or waiting in a call that uses shared buffers
		return state.Envelope{Bytes: UnknownLength}
	}
	v := state.Envelope{Comm: request.comm, Bytes: int64(len(request.buf))}
	if !request.anyDatatype {
		v.Datatype = state.DatatypeOf(request.datatype)
	}
	switch m := request.message; {
	case m != nil:
		if o := m.Origin(); o.Agreement {
			v.Agreement = true
		} else {
			v.Collective, v.Number = o.Collective, o.Number
		}
	case request.tag != AnyTag && !request.p.noTags():
		v.Tag = new(int(request.tag))
	}
	return v
}

// addUnexpected counts an unexpected message, and appends its envelope unless maxUnmatched are already stored.
func addUnexpected(s *state.Peer, u *unexpected, comm uint32, p *peer) {
	s.Unexpected++
	if len(s.Unmatched) < maxUnmatched {
		st := u.status(comm)
		v := state.Envelope{Comm: comm, Datatype: state.DatatypeOf(st.Datatype), Bytes: st.Bytes}
		if u.inbound != nil && u.inbound.p == nil || !p.noTags() {
			v.Tag = new(st.Tag)
		}
		s.Unmatched = append(s.Unmatched, v)
	}
}

// age returns the time elapsed since at, in seconds. It returns nil if at is 0.
func age(now, at handshake.Instant) *float64 {
	if at == 0 {
		return nil
	}
	return new((now - at).Seconds())
}

// lastDrop describes the last dropped packet.
type lastDrop struct {
	droppedAt   handshake.Instant
	reason      state.DropReason
	source      netip.AddrPort
	header      [protocol.HeaderLen]byte // set if hasHeader
	hasHeader   bool
	peerProfile protocol.Profile // of the peer
}

// set records a packet dropped at the time now.
func (l *lastDrop) set(now handshake.Instant, of protocol.Profile, a *RxPacket, d *Drop) {
	*l = lastDrop{droppedAt: now, reason: d.Reason, peerProfile: of}
	if a != nil {
		l.source = a.SourceAddr
		l.hasHeader = protocol.BeginsWithMark(a.Bytes) && copy(l.header[:], a.Bytes) == len(l.header)
	}
}

// snapshot describes the drop. It tries the peer's profile first and then the others, because a header that is valid in
// another profile reveals a wrong configuration.
func (l *lastDrop) snapshot(now handshake.Instant) *state.Drop {
	if l == nil {
		return nil
	}
	drop := &state.Drop{Reason: l.reason, Seconds: (now - l.droppedAt).Seconds()}
	if l.source.IsValid() {
		drop.From = l.source.String()
	}
	if !l.hasHeader {
		return drop
	}
	for _, profile := range []protocol.Profile{l.peerProfile, protocol.CloudFPGA, protocol.V09, protocol.Extended} {
		h, defect := profile.Parse(l.header[:])
		if !defect.OK() {
			continue
		}
		drop.Source, drop.Destination = &h.Src, &h.Dst
		if profile != l.peerProfile {
			drop.Profile = state.ProfileOf(profile)
		}
		break
	}
	return drop
}
