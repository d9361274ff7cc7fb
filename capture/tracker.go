package capture

import (
	"bytes"
	"io"
	"net/netip"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// TrackerOptions configure a Tracker. Callbacks may be nil.
type TrackerOptions struct {
	// Profile is the dialect of the headers. Packets of the extended profile are recognized whatever the Profile. If
	// Profile is protocol.Extended, all other packets are decoded as protocol.CloudFPGA.
	Profile protocol.Profile
	// OnEvent is called with every packet and every piece of payload, in the order of the recording.
	OnEvent func(*Event)
	// OnMessage is called with every message when it ends, or at the end of the recording.
	OnMessage func(*Message)
	// OnExtended is called with every message of the extended profile when it ends, or at the end of the recording.
	OnExtended func(*ExtendedMessage)
	// OnFinding is called with every finding.
	OnFinding func(*Finding)
	// KeepSteps is the maximum number of Steps kept for a message.
	KeepSteps int
}

// Tracker follows the messages between all pairs of addresses in a recording. It needs constant memory for each pair of
// addresses, and follows at most maxConversations pairs.
type Tracker struct {
	opts  TrackerOptions
	convs map[convKey]*conversation
	last  *conversation // cached, because consecutive packets often share a conversation
	// ranks maps ranks to addresses: see identity.go.
	ranks identities

	start, now      time.Time
	messages        int64
	event           Event
	pending         []*Finding
	scratch         []byte // payload whose end was not recorded
	data            []byte // DATA passed to the receiving half
	ended           bool
	ext             Extended // of the event, with space for ranges
	extOpenMessages int      // open messages of the extended profile
	// isJoined is true if the units are from joined recordings, which may show whether packets arrived.
	isJoined bool
	// unrecorded counts, for each recording by name, the packets that are missing from it although they arrived at its
	// vantage point.
	unrecorded map[string]*packetSample
	// notFollowed counts the units of conversations beyond the limit maxConversations. cutShortPackets counts packets
	// of which too few bytes were recorded to identify them.
	notFollowed, cutShortPackets int64
	head                         [protocol.HeaderLen]byte // of a truncated packet
}

// maxConversations limits the memory needed for an arbitrary recording. A full cluster of 128 ranks has 8128 pairs.
const maxConversations = 1 << 15

// convKey is a pair of addresses, the lower one first, so that both directions have the same key.
type convKey struct{ a, b netip.AddrPort }

// conversation tracks the messages between two addresses in both directions.
type conversation struct {
	key   convKey
	flows [2]flow // from a to b, from b to a
	tcp   [2]*streamParser
	ext   *[2]extFlow // nil until the first packet of the extended profile
}

// NewTracker returns a Tracker for a new recording.
func NewTracker(opts TrackerOptions) *Tracker {
	if opts.Profile == protocol.Extended {
		opts.Profile = protocol.CloudFPGA
	}
	return &Tracker{opts: opts, convs: map[convKey]*conversation{}, ranks: newIdentities()}
}

// Start returns the time of the first unit.
func (t *Tracker) Start() time.Time { return t.start }

// End returns the time of the last unit.
func (t *Tracker) End() time.Time { return t.now }

// instant converts the time of a unit to an Instant, the form in which the state machines expect times.
func (t *Tracker) instant(at time.Time) handshake.Instant {
	return at.Sub(t.start) + time.Second // never 0
}

// seconds converts a time to seconds since the first packet.
func (t *Tracker) seconds(at time.Time) float64 { return at.Sub(t.start).Seconds() }

// ProcessUnit processes the next unit of the recording.
func (t *Tracker) ProcessUnit(unit *pcapng.Unit) {
	if t.start.IsZero() {
		t.start = unit.Time
	}
	t.now = unit.Time
	c, forward := t.conversation(unit)
	if c == nil {
		t.notFollowed++
		return
	}
	switch {
	case unit.Proto == pcapng.TCP:
		t.processStream(c, forward, unit)
	case t.isExtended(c, forward, unit):
		t.processExtended(c, forward, unit)
	case isCoalesced(unit):
		t.processSegments(c, forward, unit)
	default:
		t.processDatagram(c, forward, unit)
	}
	t.emitFindings()
}

// processSegments processes each of the datagrams that the kernel coalesced into a unit.
func (t *Tracker) processSegments(c *conversation, forward bool, u *pcapng.Unit) {
	for rest := *u; rest.WireLen() > 0; {
		part := splitUnit(&rest, protocol.MaxDatagram)
		t.processDatagram(c, forward, &part)
	}
}

// conversation returns the conversation to which a unit belongs. forward is true if the unit was sent from a to b.
func (t *Tracker) conversation(u *pcapng.Unit) (c *conversation, forward bool) {
	key := convKey{u.Src, u.Dst}
	if forward = u.Src.Compare(u.Dst) <= 0; !forward {
		key = convKey{u.Dst, u.Src}
	}
	if t.last != nil && t.last.key == key {
		return t.last, forward
	}
	c = t.convs[key]
	if c == nil {
		if len(t.convs) >= maxConversations {
			return nil, forward
		}
		c = &conversation{key: key}
		c.flows[0] = flow{tracker: t, from: key.a, to: key.b}
		c.flows[1] = flow{tracker: t, from: key.b, to: key.a}
		c.flows[0].node, c.flows[1].node = t.ranks.node(key.a), t.ranks.node(key.b)
		c.flows[0].reverse, c.flows[1].reverse = &c.flows[1], &c.flows[0]
		t.convs[key] = c
	}
	t.last = c
	return c, forward
}

// orientFlows returns the flows of a conversation as seen by the sender of a unit: the sender sends the messages of
// flow out, and receives the messages of flow in.
func orientFlows[T any](flows *[2]T, forward bool) (out, in *T) {
	if forward {
		return &flows[0], &flows[1]
	}
	return &flows[1], &flows[0]
}

// newEvent starts the event of a unit.
func (t *Tracker) newEvent(u *pcapng.Unit, data []byte) *Event {
	t.isJoined = t.isJoined || u.Trail != nil
	t.event = Event{
		Packet: u.Packet, Time: u.Time, Proto: u.Proto, Src: u.Src, Dst: u.Dst,
		Length: len(data) + u.Truncated, Data: data, Trail: u.Trail,
	}
	return &t.event
}

// Skipped returns the number of packets that a source and the tracker skipped, by reason.
func (t *Tracker) Skipped(bySource map[string]int64) map[string]int64 {
	if t.cutShortPackets == 0 {
		return bySource
	}
	all := map[string]int64{skipNames[skipCutShort]: t.cutShortPackets}
	for reason, n := range bySource {
		all[reason] += n
	}
	return all
}

// NotFollowed returns the number of units ignored because the recording contains more than maxConversations pairs of
// addresses.
func (t *Tracker) NotFollowed() int64 { return t.notFollowed }

func (t *Tracker) emit(e *Event) {
	if t.opts.OnEvent != nil {
		t.opts.OnEvent(e)
	}
}

// processDatagram processes a UDP datagram. Like a live receiver, it uses the state of the message to decide whether
// the datagram is payload.
func (t *Tracker) processDatagram(c *conversation, forward bool, unit *pcapng.Unit) {
	out, in := orientFlows(&c.flows, forward)
	event := t.newEvent(unit, unit.Data)
	defer t.emit(event)
	out.lastHeard = event.Time
	d := t.completeHeader(unit)
	h, defect := t.opts.Profile.Parse(d.Data)
	if out.expectsPayload(&d, h, defect) {
		out.onPayload(event, unit.Data, unit.Truncated)
		return
	}
	event.Header = h
	switch {
	case defect.OK():
		event.Kind = PacketEvent
	case defect.Kind == protocol.DefectReserved:
		// A deployed node drops such a packet, but this receiver may accept it. Process the packet like a valid one,
		// because only later packets show whether it was dropped.
		event.Kind, event.Reason, event.BadByte = BadEvent, handshake.Reason(defect.Kind), defect.Offset
		event.Header = t.parseLenient(d.Data)
		asTag := ""
		if defect.Offset == tagOffset && t.opts.Profile == protocol.CloudFPGA {
			asTag = "; in profile v0.9 it is the tag: analyze with --profile v0.9 if the ranks have it"
		}
		t.addFinding(ReservedByte, event, "%s: byte %d of the header is 0x%02x, not 0: a deployed node drops the packet "+
			"silently%s", event.Header, defect.Offset, defect.Got, asTag)
	case out.hasSent && resemblesPayload(unit.Data):
		out.onPayload(event, unit.Data, unit.Truncated) // part of an unknown message
		return
	case d.Truncated > 0 && len(d.Data) < protocol.HeaderLen:
		event.Kind, event.Reason = BadEvent, handshake.Reason(defect.Kind)
		if len(d.Data) > 0 {
			t.cutShortPackets++ // count each packet once
		}
		return
	default:
		event.Kind, event.Reason, event.BadByte = BadEvent, handshake.Reason(defect.Kind), defect.Offset
		if resemblesHeader(unit.Data) {
			t.addFinding(BadHeader, event, "from %v: %v", unit.Src, defect.Err())
		}
		return
	}
	event.HasRanks = true
	if unit.Fragments > 0 {
		t.findIPFragments(event, out, unit)
	}
	if other := t.checkRanks(event, out, in); other != nil {
		// The source rank is known at another address, so process the packet in the conversation of that address.
		out, in = orientFlows(&other.flows, other.key.a == t.ranks.address(event.Header.Src, event.Dst))
	}
	t.processHeader(event, out, in, d.Data[protocol.HeaderLen:], d.Truncated)
}

// findIPFragments reports that a datagram was split into IP fragments. It does so once for each flow.
func (t *Tracker) findIPFragments(event *Event, f *flow, unit *pcapng.Unit) {
	if f.ipFragments {
		return
	}
	f.ipFragments = true
	t.addFinding(FragmentedPacket, event,
		"a datagram of %d bytes from rank %d to rank %d came in %d IP fragments of at most %d "+
			"bytes, as the MTU of the path is too "+
			"small for it: an FPGA does not join fragments, and never gets such a "+
			"datagram", unit.WireLen(), event.Header.Src, event.Header.Dst, unit.Fragments, unit.LongestFragment)
}

// tagOffset is the offset of the tag in the header of profile v0.9.
const tagOffset = 18

// completeHeader completes a header truncated by the snapshot length, if the recorded part identifies the packet. The
// missing part is the same in all packets of deployed nodes.
func (t *Tracker) completeHeader(unit *pcapng.Unit) pcapng.Unit {
	const (
		known   = 20 // includes the mark of the extended profile
		endMark = 28
	)
	missing := protocol.HeaderLen - len(unit.Data)
	if missing <= 0 || unit.Truncated < missing || len(unit.Data) < known || !protocol.BeginsWithMark(unit.Data) ||
		protocol.IsExtended(unit.Data) {
		return *unit
	}
	t.head = [protocol.HeaderLen]byte{}
	for i := endMark; i < protocol.HeaderLen; i++ {
		t.head[i] = protocol.Mark
	}
	copy(t.head[:], unit.Data)
	d := *unit
	d.Data, d.Truncated = t.head[:], unit.Truncated-missing
	return d
}

// processHeader processes a valid header.
func (t *Tracker) processHeader(event *Event, out, in *flow, payload []byte, truncated int) {
	header := event.Header
	if header.Type != protocol.Data && header.Type != protocol.Error && len(payload)+truncated > 0 &&
		event.Proto == pcapng.UDP {
		event.Kind, event.Reason = BadEvent, handshake.ReasonLength
		t.addFinding(BadHeader, event, "%v with %d bytes behind its header: an FPGA drops it", header, len(payload)+truncated)
		return
	}
	if header.Call == protocol.Barrier {
		switch revoked, _, ok := revocation(header); {
		case !ok:
			event.Reason = handshake.ReasonBarrier
		case revoked == protocol.SendRequest:
			out.onRequestRevoked(event)
		default:
			in.onClearRevoked(event)
		}
		return
	}
	switch header.Type {
	case protocol.SendRequest:
		out.onRequest(event)
	case protocol.Data:
		out.onData(event, payload, truncated)
	case protocol.ClearToSend:
		in.onClear(event)
	case protocol.Ack:
		in.onAck(event)
	}
}

// parseLenient decodes a header and ignores its reserved bytes.
func (t *Tracker) parseLenient(b []byte) protocol.Header {
	var clean [protocol.HeaderLen]byte
	copy(clean[:], b)
	clear(clean[18:28])
	h, _ := protocol.CloudFPGA.Parse(clean[:])
	return h
}

// resemblesHeader reports whether b contains at least one of the two marks of a header.
func resemblesHeader(b []byte) bool {
	mark := []byte{protocol.Mark, protocol.Mark, protocol.Mark, protocol.Mark}
	return bytes.HasPrefix(b, mark) || len(b) >= protocol.HeaderLen && bytes.Equal(b[28:32], mark)
}

// resemblesPayload reports whether b is likely to be payload because it does not resemble a header.
func resemblesPayload(b []byte) bool { return !resemblesHeader(b) }

// SetEnd sets the end time of the recording, which determines how long open waits last. It does nothing unless end is
// after the last packet.
func (t *Tracker) SetEnd(end time.Time) {
	if !t.start.IsZero() && end.After(t.now) {
		t.now = end
	}
}

// Finish ends the recording and reports open messages and waits.
func (t *Tracker) Finish() {
	if t.ended {
		return
	}
	t.ended = true
	t.reportOpen()
	t.reportExtended()
	t.reportUnrecorded()
	t.emitFindings()
}

// ProcessAll processes all units of a source and then calls Finish. It returns the source's error, or nil at io.EOF.
func (t *Tracker) ProcessAll(src Source) error {
	var u pcapng.Unit
	for {
		err := src.Next(&u)
		if err == nil {
			t.ProcessUnit(&u)
			continue
		}
		t.SetEnd(src.Stats().End)
		t.Finish()
		if err == io.EOF { //nolint:errorlint // a Source's contract, as io.Reader's
			return nil
		}
		return err
	}
}
