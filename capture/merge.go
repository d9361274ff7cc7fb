package capture

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

// Limits on the packets that the merger holds while it waits for sightings in other recordings.
const (
	// mergeWindow is the maximum delay of a packet between two vantage points. A packet not seen within this time
	// counts as lost.
	mergeWindow = time.Second
	maxHeld     = 1 << 16
	maxHeldData = 64 << 20
	// minMergeWindow replaces mergeWindow if more than maxHeld packets or maxHeldData bytes would be held.
	minMergeWindow = 20 * time.Millisecond
	// recentWindow is the maximum time after the delivery of a packet within which an equal packet counts as its copy.
	recentWindow = 2 * time.Second
)

// merger is the Source of several recordings.
type merger struct {
	vantages []*vantage
	readers  []*vantageReader
	links    map[[2]int]*clockLink
	prefix   int
	names    map[*survey]string

	flows map[flowKey]*mergedFlow
	last  *mergedFlow
	tcp   *reassembler
	// queue[head:] holds packets in order of time. pending maps the key of a packet to the queued packets that some
	// vantage point of their route has not seen yet.
	queue []*heldPacket
	head  int
	// heldData is the number of recorded bytes in queue. Above maxHeldData, packets leave the queue before their fate
	// is known. free holds packets for reuse.
	heldData int
	pending  map[uint64][]*heldPacket
	free     []*heldPacket
	// lastDelivery maps the copyKey of a datagram to the time of its last delivery. deliveries lists the deliveries in
	// order of time.
	lastDelivery map[uint64]int64
	deliveries   []delivery

	now     int64
	started bool
	// common counts packets that several vantage points saw, and undecided the ones that left the queue early.
	lastNumber    int64
	units         int64
	packets       int64
	common        int64
	undecided     int64
	missing       []*MissingPackets
	oneWay        []*OneWayFlow
	emptySegments int64 // segments without data
	err           error
	trail         pcapng.Trail
}

// mergedFlow is a flow together with the vantage points on its path.
type mergedFlow struct {
	flowKey
	hash uint64
	// route lists the vantage points in the order in which packets pass them. ordered reports whether the order is
	// known.
	route       []hop
	ordered     bool
	hasStableID bool
}

// hop is a vantage point on a route. delay is in nanoseconds, relative to a fixed vantage point of the route.
type hop struct {
	vantage int
	delay   int64
}

// heldPacket is a packet that the merger holds until its fate is decided.
type heldPacket struct {
	unit      pcapng.Unit
	data      []byte
	flow      *mergedFlow // nil for a segment of a TCP stream
	seg       flowSegment
	key       uint64
	ipID      uint16
	firstTime int64 // time of the first sighting
	firstHop  int   // index of the first sighting in the route, or -1
	seenMask  uint64
	sightings []pcapng.Sighting
}

// delivery is a delivered datagram.
type delivery struct {
	key uint64
	at  int64
}

// maxVantages limits the number of vantage points, because each needs a bit in heldPacket.seenMask.
const maxVantages = 64

func newMerger(options Options, files []*survey, list []*vantage, links map[[2]int]*clockLink, prefix int) (*merger,
	error) {
	if len(list) > maxVantages {
		const reason = "recordings of more than 64 places cannot be joined"
		return nil, &FormatError{Name: files[0].name, Reason: reason, Offset: unknownOffset}
	}
	m := &merger{
		vantages: list, links: links, prefix: prefix, names: baseNames(files), flows: map[flowKey]*mergedFlow{},
		tcp:     newReassembler(),
		pending: map[uint64][]*heldPacket{}, lastDelivery: map[uint64]int64{},
	}
	for i, v := range list {
		m.readers = append(m.readers, &vantageReader{vantage: v, index: i, opts: options, shortNames: m.names,
			files: v.files})
	}
	m.findOneWay()
	return m, nil
}

// findOneWay finds flows that are missing at a vantage point although it shares packets of the opposite direction.
func (m *merger) findOneWay() {
	for pair, l := range m.links {
		for k := range l.flows {
			back := k.reverse()
			a, b := m.vantages[pair[0]], m.vantages[pair[1]]
			switch na, nb := a.datagrams(back), b.datagrams(back); {
			case na > 0 && nb == 0:
				m.addOneWay(back, a, b, na)
			case nb > 0 && na == 0:
				m.addOneWay(back, b, a, nb)
			}
		}
	}
	slices.SortFunc(m.oneWay, func(x, y *OneWayFlow) int {
		return cmp.Or(cmp.Compare(x.Src, y.Src), cmp.Compare(x.Dst, y.Dst),
			cmp.Compare(x.In, y.In), cmp.Compare(x.NotIn, y.NotIn))
	})
}

func (m *merger) addOneWay(k flowKey, in, notIn *vantage, n int64) {
	m.oneWay = append(m.oneWay, &OneWayFlow{
		Src: k.src.String(), Dst: k.dst.String(), In: m.names[in.files[0]], NotIn: m.names[notIn.files[0]], Packets: n,
	})
}

// lookUpFlow returns a flow and its route.
func (m *merger) lookUpFlow(key flowKey) *mergedFlow {
	if m.last != nil && m.last.flowKey == key {
		return m.last
	}
	f := m.flows[key]
	if f == nil {
		f = &mergedFlow{flowKey: key, hash: key.hash()}
		m.findRoute(f)
		if len(m.flows) < maxSurveyFlows {
			m.flows[key] = f
		}
	}
	m.last = f
	return f
}

// findRoute sets the route of a flow to the vantage points that recorded the flow and share packets with a common one
// of them. Of several such routes, it chooses the longest.
func (m *merger) findRoute(f *mergedFlow) {
	for base := range m.vantages {
		if m.vantages[base].datagrams(f.flowKey) == 0 {
			continue
		}
		route, ordered, byID := []hop{{base, 0}}, true, true
		for other, v := range m.vantages {
			l := m.links[[2]int{min(base, other), max(base, other)}]
			if l == nil || v.datagrams(f.flowKey) == 0 {
				continue
			}
			first, delay := m.flowOrder(f.flowKey, l, base, other)
			ordered, byID = ordered && first != 0, byID && l.hasStableID[f.flowKey]
			route = append(route, hop{other, delay})
		}
		if len(route) > len(f.route) {
			f.route, f.ordered, f.hasStableID = route, ordered, byID
		}
	}
	slices.SortFunc(f.route, func(a, b hop) int { return cmp.Compare(a.delay, b.delay) })
}

// flowOrder returns the order in which vantage points base and other see a flow, encoded as in flowLink.order, and the
// delay from base to other. The delay is negative if other sees the flow first.
func (m *merger) flowOrder(key flowKey, link *clockLink, base, other int) (first int, delay int64) {
	fl, ok := link.flows[key]
	if !ok {
		fl.delay = link.estimatedDelay()
	}
	first, delay = fl.order, int64(math.Round(fl.delay))
	if base > other {
		first, delay = -first, -delay
	}
	a, b, src, dst := m.vantages[base], m.vantages[other], key.src.Addr(), key.dst.Addr()
	switch {
	case first != 0:
	case m.isNearerToDst(key, other, base) || a.nearAddrs[src] && !a.nearAddrs[dst] || b.nearAddrs[dst] &&
		!b.nearAddrs[src]:
		first = 1
	case m.isNearerToDst(key, base, other) || b.nearAddrs[src] && !b.nearAddrs[dst] || a.nearAddrs[dst] &&
		!a.nearAddrs[src]:
		first = -1
	}
	// The known direction determines the sign of the delay, because the delay may be smaller than the error of the
	// clocks.
	switch {
	case first > 0:
		delay = max(delay, 1)
		if !ok {
			delay = int64(link.estimatedDelay())
		}
	case first < 0:
		delay = min(delay, -1)
		if !ok {
			delay = -int64(link.estimatedDelay())
		}
	}
	return first, delay
}

// isNearerToDst reports whether the vantage point near is closer to the destination of a flow than the vantage point
// away. This is known if only near recorded packets from the destination.
func (m *merger) isNearerToDst(k flowKey, near, away int) bool {
	return m.vantages[near].datagrams(k.reverse()) > 0 && m.vantages[away].datagrams(k.reverse()) == 0
}

// Next implements Source.
func (m *merger) Next(unit *pcapng.Unit) error {
	for {
		if m.tcp.pop(unit) {
			m.lastNumber++
			m.units++
			unit.Packet, unit.Trail = m.lastNumber, nil
			return nil
		}
		if m.head < len(m.queue) {
			if fate, from, to, decided := m.decideFate(m.queue[m.head]); decided {
				if m.deliver(unit, fate, from, to) {
					return nil
				}
				continue
			}
		}
		if m.err != nil {
			if m.tcp.skipAll(); len(m.tcp.ready) > 0 {
				continue
			}
			return m.err
		}
		if err := m.readPacket(); err != nil {
			return err
		}
	}
}

// readPacket reads the earliest unread packet of all recordings.
func (m *merger) readPacket() error {
	if !m.started {
		m.started = true
		for _, r := range m.readers {
			if err := r.advance(); err != nil {
				return err
			}
		}
	}
	var reader *vantageReader
	for _, x := range m.readers {
		if !x.ended && (reader == nil || x.refTime < reader.refTime) {
			reader = x
		}
	}
	if reader == nil {
		m.setEndError()
		return nil
	}
	m.now = max(m.now, reader.refTime)
	if reader.result == gotSegment {
		m.enqueueSegment(reader)
	} else {
		id := reader.src.decoder.ipID
		eachDatagram(&reader.unit, func(d *pcapng.Unit) { m.addDatagram(reader, d, partIPID(&reader.unit, d, id)) })
	}
	return reader.advance()
}

// setEndError sets the error returned at the end of the recordings.
func (m *merger) setEndError() {
	m.err = io.EOF
	var failed []error
	for _, r := range m.readers {
		failed = append(failed, r.err)
	}
	if err := errors.Join(failed...); err != nil {
		m.err = err
	}
}

// addDatagram handles a datagram from a vantage point: either another sighting of a packet that is pending, or a new
// packet.
func (m *merger) addDatagram(reader *vantageReader, unit *pcapng.Unit, id uint16) {
	reader.datagrams++
	f := m.lookUpFlow(flowKey{unit.Src, unit.Dst})
	at := slices.IndexFunc(f.route, func(s hop) bool { return s.vantage == reader.index })
	key := datagramKey(f.hash, unit, m.prefix)
	if at >= 0 && len(f.route) > 1 {
		if p := m.findPending(f, key, unit, id, reader.refTime, at); p != nil {
			m.heldData += p.addSighting(reader, unit)
			if p.seenMask |= 1 << reader.index; len(p.sightings) == len(f.route) {
				m.removePending(p)
			}
			return
		}
	}
	p := m.enqueue(unit)
	p.flow, p.key, p.ipID, p.firstTime, p.firstHop, p.seenMask = f, key, id, reader.refTime, at, 1<<reader.index
	p.addSighting(reader, unit)
	if at >= 0 && len(f.route) > 1 {
		m.pending[key] = append(m.pending[key], p)
	}
}

// addSighting records that a vantage point saw a packet. It returns the number of bytes by which this recording extends
// the packet if other recordings truncated it.
func (p *heldPacket) addSighting(r *vantageReader, unit *pcapng.Unit) int {
	p.sightings = append(p.sightings, pcapng.Sighting{Recording: r.name, Packet: unit.Packet,
		Time: time.Unix(0, r.refTime).UTC()})
	if len(unit.Comments) > 0 && len(p.unit.Comments) == 0 {
		p.unit.Comments = unit.Comments
	}
	if p.unit.Truncated > 0 && unit.Truncated < p.unit.Truncated { // this recording has more bytes
		more := len(unit.Data) - len(p.data)
		p.data = append(p.data[:0], unit.Data...)
		p.unit.Data, p.unit.Truncated = p.data, unit.Truncated
		return more
	}
	return 0
}

// findPending returns the pending packet, seen at another vantage point, that equals a datagram. Of several packets
// with the same bytes, such as retransmissions, it returns the one whose delay is closest to the estimated delay.
func (m *merger) findPending(f *mergedFlow, key uint64, unit *pcapng.Unit, id uint16, at int64,
	station int) *heldPacket {
	var best *heldPacket
	least := int64(mergeWindow)
	for _, held := range m.pending[key] {
		if held.flow != f || held.seenMask&(1<<f.route[station].vantage) != 0 || held.unit.WireLen() != unit.WireLen() ||
			f.hasStableID && held.ipID != 0 && id != 0 && held.ipID != id {
			continue
		}
		n := min(len(held.unit.Data), len(unit.Data))
		if !bytes.Equal(held.unit.Data[:n], unit.Data[:n]) {
			continue
		}
		late := at - held.firstTime - (f.route[station].delay - f.route[held.firstHop].delay)
		if late = max(late, -late); late <= least {
			best, least = held, late-1
		}
	}
	return best
}

// removePending removes a packet from pending.
func (m *merger) removePending(held *heldPacket) {
	list := m.pending[held.key]
	i := slices.Index(list, held)
	if i < 0 {
		return
	}
	if list = slices.Delete(list, i, i+1); len(list) == 0 {
		delete(m.pending, held.key)
		return
	}
	m.pending[held.key] = list
}

// enqueue adds a packet to the queue.
func (m *merger) enqueue(unit *pcapng.Unit) *heldPacket {
	var held *heldPacket
	if n := len(m.free); n > 0 {
		held, m.free = m.free[n-1], m.free[:n-1]
	} else {
		held = &heldPacket{}
	}
	held.unit, held.data = *unit, append(held.data[:0], unit.Data...)
	held.unit.Data, held.sightings = held.data, held.sightings[:0]
	m.heldData += len(held.data)
	if m.head > maxHeld/2 {
		m.queue = slices.Delete(m.queue, 0, m.head)
		m.head = 0
	}
	m.queue = append(m.queue, held)
	return held
}

// enqueueSegment adds a segment of a TCP stream to the queue. All vantage points share one stream: the reassembler
// ignores segments seen before.
func (m *merger) enqueueSegment(r *vantageReader) {
	seg := r.src.decoder.segment
	p := m.enqueue(&pcapng.Unit{Data: seg.data})
	p.flow, p.seg = nil, seg
	p.seg.data, p.seg.time = p.data, time.Unix(0, r.refTime).UTC()
	p.firstTime = r.refTime
}

// decideFate returns the fate of held, the first packet of the queue. If the packet was lost or copied, this happened
// between vantage points from and to. decided is false while another vantage point may still show the packet.
func (m *merger) decideFate(held *heldPacket) (fate pcapng.Fate, from, to int, decided bool) {
	f := held.flow
	if f == nil || len(f.route) < 2 || held.firstHop < 0 {
		return pcapng.FateUnknown, 0, 0, true
	}
	if len(held.sightings) == len(f.route) {
		return pcapng.FateDelivered, 0, 0, true
	}
	if waited := m.now - held.firstTime; m.err == nil && waited <= int64(mergeWindow) {
		if len(m.queue)-m.head <= maxHeld && m.heldData <= maxHeldData {
			return pcapng.FateUnknown, 0, 0, false
		}
		if waited <= int64(minMergeWindow) {
			m.undecided++
			return pcapng.FateUnknown, 0, 0, true
		}
	}
	if !f.ordered {
		return pcapng.FateUnknown, 0, 0, true
	}
	last := held.firstHop // along the route
	for i := len(f.route) - 1; i > last; i-- {
		if held.seenMask&(1<<f.route[i].vantage) != 0 {
			last = i
		}
	}
	for i := last + 1; i < len(f.route); i++ {
		if m.wouldBeRecorded(held, i) {
			return pcapng.FateLost, f.route[last].vantage, f.route[i].vantage, true
		}
	}
	// Only an IP identification distinguishes a copy from an equal packet of another message, which the vantage points
	// before firstHop may not have recorded.
	if at, again := m.lastDelivery[held.copyKey()]; again && f.hasStableID && held.ipID != 0 &&
		held.firstTime-at <= int64(recentWindow) {
		for i := held.firstHop - 1; i >= 0; i-- {
			if m.wouldBeRecorded(held, i) {
				return pcapng.FateCopied, f.route[i].vantage, f.route[held.firstHop].vantage, true
			}
		}
	}
	return pcapng.FateUnknown, 0, 0, true
}

// wouldBeRecorded reports whether vantage point i of the packet's route certainly recorded the packet if it arrived
// there: the vantage point was recording at that time, and its recorders dropped no packets.
func (m *merger) wouldBeRecorded(held *heldPacket, i int) bool {
	s := held.flow.route[i]
	v := m.vantages[s.vantage]
	if v.droppedPackets() > 0 {
		return false
	}
	at := held.firstTime + s.delay - held.flow.route[held.firstHop].delay
	return v.isRecordingAt(at + (at - v.toReference(at)))
}

// deliver removes the first packet from the queue and stores it in unit. It returns false for a TCP segment that does
// not complete a unit.
func (m *merger) deliver(unit *pcapng.Unit, fate pcapng.Fate, from, to int) bool {
	held := m.queue[m.head]
	m.queue[m.head] = nil
	if m.head++; m.head == len(m.queue) {
		m.queue, m.head = m.queue[:0], 0
	}
	m.heldData -= len(held.data)
	if m.free = append(m.free, held); held.flow == nil {
		return m.deliverSegment(unit, held)
	}
	m.removePending(held)
	m.recordDelivery(held)
	m.lastNumber++
	m.units++
	m.packets++
	if len(held.sightings) > 1 {
		m.common++
	} else {
		m.readers[bits.TrailingZeros64(held.seenMask)].onlyHere++
	}
	*unit = held.unit
	slices.SortStableFunc(held.sightings, func(a, b pcapng.Sighting) int { return a.Time.Compare(b.Time) })
	m.trail = pcapng.Trail{Sightings: held.sightings, Fate: fate}
	if fate == pcapng.FateLost || fate == pcapng.FateCopied {
		m.trail.From, m.trail.To = m.nameAt(from, held), m.nameAt(to, held)
		if fate == pcapng.FateLost {
			m.countMissing(m.trail.From, m.trail.To)
		}
	}
	unit.Packet, unit.Time, unit.Trail = m.lastNumber, time.Unix(0, held.firstTime).UTC(), &m.trail
	return true
}

// deliverSegment passes a segment to the reassembler, and reports whether the segment completed a unit.
func (m *merger) deliverSegment(unit *pcapng.Unit, p *heldPacket) bool {
	m.tcp.expire(p.seg.time)
	switch m.tcp.addSegment(p.seg.tcpFlow, p.seg.tcpSegment, p.seg.syn, unit) {
	case gotUnit:
		m.lastNumber++
		m.units++
		m.packets++
		unit.Packet, unit.Trail = m.lastNumber, nil
		return true
	case skipNoData:
		m.emptySegments++
	}
	return false
}

// recordDelivery records the delivery of a datagram, so that decideFate recognizes later copies.
func (m *merger) recordDelivery(held *heldPacket) {
	if !held.flow.hasStableID || held.ipID == 0 {
		return
	}
	const most = 1 << 16
	for len(m.deliveries) > 0 && (len(m.deliveries) > most || held.firstTime-m.deliveries[0].at > int64(recentWindow)) {
		if old := m.deliveries[0]; m.lastDelivery[old.key] == old.at {
			delete(m.lastDelivery, old.key)
		}
		m.deliveries = m.deliveries[1:]
	}
	m.lastDelivery[held.copyKey()] = held.firstTime
	m.deliveries = append(m.deliveries, delivery{held.copyKey(), held.firstTime})
}

// copyKey returns a key that a packet with an IP identification shares only with its copies.
func (p *heldPacket) copyKey() uint64 { return keyWithID(p.key, p.ipID) }

// nameAt returns the name of the file that was being recorded at a vantage point when a packet passed.
func (m *merger) nameAt(vantage int, p *heldPacket) string {
	v := m.vantages[vantage]
	at := p.firstTime + (p.firstTime - v.toReference(p.firstTime))
	name := m.names[v.files[0]]
	for _, s := range v.files {
		if s.begin <= at {
			name = m.names[s]
		}
	}
	return name
}

// countMissing counts a packet that is missing from recording to although recording from contains it.
func (m *merger) countMissing(from, to string) {
	for _, l := range m.missing {
		if l.From == from && l.To == to {
			l.Packets++
			return
		}
	}
	m.missing = append(m.missing, &MissingPackets{from, to, 1})
}

// Stats implements Source.
func (m *merger) Stats() Stats {
	stats := Stats{Units: m.units}
	for _, r := range m.readers {
		part := r.stats
		if r.src != nil {
			now := r.src.Stats()
			part.add(&now)
		}
		stats.add(&part)
	}
	if stats.Skipped == nil {
		stats.Skipped = map[string]int64{}
	}
	if m.emptySegments > 0 {
		stats.Skipped[skipNames[skipNoData]] += m.emptySegments
	}
	stats.Joined = m.describeJoin()
	return stats
}

// Close implements Source.
func (m *merger) Close() error {
	for _, r := range m.readers {
		if r.src != nil {
			_ = r.src.Close()
		}
	}
	return nil
}
