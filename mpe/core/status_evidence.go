package core

import (
	"net/netip"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Envelope is by what a message and a receive match.
type Envelope struct {
	// Tag is nil for any tag, for a message of a collective call, and where the wire carries none.
	Tag  *int   `json:"tag,omitempty"`
	Comm uint32 `json:"comm,omitempty"`
	// Datatype is empty for a receive of any.
	Datatype string `json:"datatype,omitempty"`
	// Bytes is the length, or UnknownLength.
	Bytes int64 `json:"bytes"`
	// Collective and Number are the call that the message is of. Agreement: it is one by which the members of a
	// communicator agree before their first call, which is not named.
	Collective string `json:"collective,omitempty"`
	Number     int    `json:"number,omitempty"`
	Agreement  bool   `json:"agreement,omitempty"`
}

// maxUnmatched bounds PeerSnapshot.Unmatched.
const maxUnmatched = 4

// envelope returns the envelope of a wait's operation.
func envelope(e *Core, w *Waiting) Envelope {
	r := w.req
	if r == nil { // detached, or of a call by shared buffers
		return Envelope{Bytes: UnknownLength}
	}
	v := Envelope{Comm: r.comm, Bytes: int64(len(r.buf))}
	if !r.anyDatatype {
		v.Datatype = r.datatype.String()
	}
	switch m := r.message; {
	case m != nil:
		var named bool
		if v.Collective, v.Number, named = m.Collective(); !named {
			v.Collective, v.Number, v.Agreement = "", 0, true
		}
	case r.tag != AnyTag && !r.p.noTags():
		v.Tag = new(int(r.tag))
	}
	return v
}

// unexpected counts a message that no receive has matched, and keeps the envelopes of the oldest.
func (s *PeerSnapshot) unexpected(u *unexpected, comm uint32, p *peer) {
	s.Unexpected++
	if len(s.Unmatched) < maxUnmatched {
		st := u.status(comm)
		v := Envelope{Comm: comm, Datatype: st.Datatype.String(), Bytes: st.Bytes}
		if u.in != nil && u.in.p == nil || !p.noTags() {
			v.Tag = new(st.Tag)
		}
		s.Unmatched = append(s.Unmatched, v)
	}
}

// age returns the time since at in seconds, or nil if at is 0.
func age(now, at handshake.Instant) *float64 {
	if at == 0 {
		return nil
	}
	return new((now - at).Seconds())
}

// DropSnapshot describes a packet that was dropped.
type DropSnapshot struct {
	Reason  string  `json:"reason"`
	Seconds float64 `json:"age_seconds"`
	// From is the address that it came from, if the transport knows it.
	From string `json:"from,omitempty"`
	// Source and Destination are the ranks that its header names; nil if it has none that can be read.
	Source      *uint32 `json:"source,omitempty"`
	Destination *uint32 `json:"destination,omitempty"`
	// Profile is the profile of which it is a packet, if that is another one than the peer's.
	Profile string `json:"profile,omitempty"`
}

// lastDrop is the last packet that was dropped.
type lastDrop struct {
	at     handshake.Instant
	reason DropReason
	from   netip.AddrPort
	header [protocol.HeaderLen]byte // of a packet that begins as one
	packet bool
	of     protocol.Profile // the peer's
}

// set notes a drop at the time now.
func (l *lastDrop) set(now handshake.Instant, of protocol.Profile, a *RxPacket, d *Drop) {
	*l = lastDrop{at: now, reason: d.Reason, of: of}
	if a != nil {
		l.from = a.From
		l.packet = protocol.BeginsWithMark(a.Bytes) && copy(l.header[:], a.Bytes) == len(l.header)
	}
}

func (l *lastDrop) snapshot(now handshake.Instant) *DropSnapshot {
	if l == nil {
		return nil
	}
	s := &DropSnapshot{Reason: l.reason.String(), Seconds: (now - l.at).Seconds()}
	if l.from.IsValid() {
		s.From = l.from.String()
	}
	if !l.packet {
		return s
	}
	for _, p := range []protocol.Profile{l.of, protocol.CloudFPGA, protocol.V09, protocol.Extended} {
		h, defect := p.Parse(l.header[:])
		if !defect.OK() {
			continue
		}
		s.Source, s.Destination = &h.Src, &h.Dst
		if p != l.of {
			s.Profile = p.String()
		}
		break
	}
	return s
}
