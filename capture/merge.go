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

// Limits on the packets held until it is clear whether other recordings show them as well.
const (
	// mergeWindow is the maximum delay of a packet between two vantage points. A packet that is not seen within this
	// time is lost.
	mergeWindow = time.Second
	maxHeld     = 1 << 16
	maxHeldData = 64 << 20
	// leastWindow replaces mergeWindow if more than maxHeld packets or maxHeldData bytes would be held.
	leastWindow = 20 * time.Millisecond
	// meetWindow is the maximum time after a packet at which a copy of it may arrive.
	meetWindow = 2 * time.Second
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
	// queue[head:] holds packets in order of time. pending holds the packets that have not been seen at all vantage
	// points yet.
	queue    []*heldPacket
	head     int
	heldData int
	pending  map[uint64][]*heldPacket
	free     []*heldPacket
	// recent maps the key of a datagram to the time of its last delivery. given lists deliveries in order.
	recent map[uint64]int64
	given  []givenPacket

	now       int64
	started   bool
	number    int64
	units     int64
	packets   int64
	common    int64
	undecided int64
	missing   []*Missing
	oneWay    []*OneWay
	skipped   int64 // segments without data
	err       error
	trail     pcapng.Trail
}

// mergedFlow is a flow and the vantage points on its path.
type mergedFlow struct {
	flowKey
	hash uint64
	// route lists the vantage points in the order in which packets pass them. ordered reports whether the order is
	// known.
	route   []station
	ordered bool
	byID    bool
}

// station is a vantage point on a route, with its delay after the first one.
type station struct {
	vantage int
	delay   int64
}

// heldPacket is a packet held by the merger.
type heldPacket struct {
	unit  pcapng.Unit
	data  []byte
	flow  *mergedFlow // nil for a segment of a TCP stream
	seg   flowSegment
	key   uint64
	id    uint16
	at    int64 // time of the first sighting
	first int   // index of the first sighting in the route, or -1
	seen  uint64
	trail []pcapng.Sighting
}

// givenPacket is a delivered datagram.
type givenPacket struct {
	key uint64
	at  int64
}

// maxVantages is the maximum number of vantage points. heldPacket.seen has a bit for each.
const maxVantages = 64

func newMerger(o Options, files []*survey, list []*vantage, links map[[2]int]*clockLink, prefix int) (*merger, error) {
	if len(list) > maxVantages {
		const reason = "recordings of more than 64 places cannot be joined"
		return nil, &FormatError{Name: files[0].name, Reason: reason, Offset: unknownOffset}
	}
	m := &merger{
		vantages: list, links: links, prefix: prefix, names: baseNames(files), flows: map[flowKey]*mergedFlow{},
		tcp:     newReassembler(),
		pending: map[uint64][]*heldPacket{}, recent: map[uint64]int64{},
	}
	for i, v := range list {
		m.readers = append(m.readers, &vantageReader{vantage: v, index: i, opts: o, short: m.names, files: v.files})
	}
	m.findOneWay()
	return m, nil
}

// findOneWay finds flows missing at a vantage point that has common packets of the opposite direction.
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
	slices.SortFunc(m.oneWay, func(x, y *OneWay) int {
		return cmp.Or(cmp.Compare(x.Src, y.Src), cmp.Compare(x.Dst, y.Dst),
			cmp.Compare(x.In, y.In), cmp.Compare(x.NotIn, y.NotIn))
	})
}

func (m *merger) addOneWay(k flowKey, in, notIn *vantage, n int64) {
	m.oneWay = append(m.oneWay, &OneWay{
		Src: k.src.String(), Dst: k.dst.String(), In: m.names[in.files[0]], NotIn: m.names[notIn.files[0]], Packets: n,
	})
}

// flow returns a flow and its route.
func (m *merger) flow(k flowKey) *mergedFlow {
	if m.last != nil && m.last.flowKey == k {
		return m.last
	}
	f := m.flows[k]
	if f == nil {
		f = &mergedFlow{flowKey: k, hash: k.hash()}
		m.route(f)
		if len(m.flows) < maxSurveyFlows {
			m.flows[k] = f
		}
	}
	m.last = f
	return f
}

// route determines the vantage points of a flow: one that has packets of the flow, and all others that have packets of
// the flow and share packets with it.
func (m *merger) route(f *mergedFlow) {
	for base := range m.vantages {
		if m.vantages[base].datagrams(f.flowKey) == 0 {
			continue
		}
		route, ordered, byID := []station{{base, 0}}, true, true
		for other, v := range m.vantages {
			l := m.links[[2]int{min(base, other), max(base, other)}]
			if l == nil || v.datagrams(f.flowKey) == 0 {
				continue
			}
			first, delay := m.between(f.flowKey, l, base, other)
			ordered, byID = ordered && first != 0, byID && l.byID[f.flowKey]
			route = append(route, station{other, delay})
		}
		if len(route) > len(f.route) {
			f.route, f.ordered, f.byID = route, ordered, byID
		}
	}
	slices.SortFunc(f.route, func(a, b station) int { return cmp.Compare(a.delay, b.delay) })
}

// between reports which of two vantage points sees a flow first, encoded as flowLink.first, and the delay from base to
// other, which is negative if other sees it first.
func (m *merger) between(k flowKey, l *clockLink, base, other int) (first int, delay int64) {
	fl, ok := l.flows[k]
	if !ok {
		fl.delay = l.usual()
	}
	first, delay = fl.first, int64(math.Round(fl.delay))
	if base > other {
		first, delay = -first, -delay
	}
	a, b, src, dst := m.vantages[base], m.vantages[other], k.src.Addr(), k.dst.Addr()
	switch {
	case first != 0:
	case m.endOf(k, other, base) || a.near[src] && !a.near[dst] || b.near[dst] && !b.near[src]:
		first = 1
	case m.endOf(k, base, other) || b.near[src] && !b.near[dst] || a.near[dst] && !a.near[src]:
		first = -1
	}
	// If the delay is smaller than the error of the clocks, the known direction decides.
	switch {
	case first > 0:
		delay = max(delay, 1)
		if !ok {
			delay = int64(l.usual())
		}
	case first < 0:
		delay = min(delay, -1)
		if !ok {
			delay = -int64(l.usual())
		}
	}
	return first, delay
}

// endOf reports whether vantage point near is nearer to the destination of a flow than away: near has packets from the
// destination, and away has none.
func (m *merger) endOf(k flowKey, near, away int) bool {
	return m.vantages[near].datagrams(k.reverse()) > 0 && m.vantages[away].datagrams(k.reverse()) == 0
}

// Next implements Source.
func (m *merger) Next(u *pcapng.Unit) error {
	for {
		if m.tcp.pop(u) {
			m.number++
			m.units++
			u.Packet, u.Trail = m.number, nil
			return nil
		}
		if m.head < len(m.queue) {
			if fate, from, to, decided := m.decide(m.queue[m.head]); decided {
				if m.give(u, fate, from, to) {
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
		if err := m.read(); err != nil {
			return err
		}
	}
}

// read reads the next packet of all recordings.
func (m *merger) read() error {
	if !m.started {
		m.started = true
		for _, r := range m.readers {
			if err := r.next(); err != nil {
				return err
			}
		}
	}
	var r *vantageReader
	for _, x := range m.readers {
		if !x.ended && (r == nil || x.at < r.at) {
			r = x
		}
	}
	if r == nil {
		m.end()
		return nil
	}
	m.now = max(m.now, r.at)
	if r.verdict == gotSegment {
		m.holdSegment(r)
	} else {
		id := r.src.decoder.id
		eachDatagram(&r.unit, func(d *pcapng.Unit) { m.datagram(r, d, partID(&r.unit, d, id)) })
	}
	return r.next()
}

// end sets the error returned at the end of the recordings.
func (m *merger) end() {
	m.err = io.EOF
	var failed []error
	for _, r := range m.readers {
		failed = append(failed, r.err)
	}
	if err := errors.Join(failed...); err != nil {
		m.err = err
	}
}

// datagram handles a datagram from a vantage point. Another vantage point may have shown the datagram before.
func (m *merger) datagram(r *vantageReader, u *pcapng.Unit, id uint16) {
	r.datagrams++
	f := m.flow(flowKey{u.Src, u.Dst})
	at := slices.IndexFunc(f.route, func(s station) bool { return s.vantage == r.index })
	key := datagramKey(f.hash, u, m.prefix)
	if at >= 0 && len(f.route) > 1 {
		if p := m.find(f, key, u, id, r.at, at); p != nil {
			m.heldData += p.see(r, u)
			if p.seen |= 1 << r.index; len(p.trail) == len(f.route) {
				m.forget(p)
			}
			return
		}
	}
	p := m.hold(u)
	p.flow, p.key, p.id, p.at, p.first, p.seen = f, key, id, r.at, at, 1<<r.index
	p.see(r, u)
	if at >= 0 && len(f.route) > 1 {
		m.pending[key] = append(m.pending[key], p)
	}
}

// see adds a sighting of a packet. It returns the number of bytes that this recording has in addition to earlier ones.
func (p *heldPacket) see(r *vantageReader, u *pcapng.Unit) int {
	p.trail = append(p.trail, pcapng.Sighting{Recording: r.name, Packet: u.Packet, Time: time.Unix(0, r.at).UTC()})
	if len(u.Comments) > 0 && len(p.unit.Comments) == 0 {
		p.unit.Comments = u.Comments
	}
	if p.unit.Truncated > 0 && u.Truncated < p.unit.Truncated { // this recording has more bytes
		more := len(u.Data) - len(p.data)
		p.data = append(p.data[:0], u.Data...)
		p.unit.Data, p.unit.Truncated = p.data, u.Truncated
		return more
	}
	return 0
}

// find returns the pending packet, seen at another vantage point, that equals a datagram. Of several packets with the
// same bytes, such as retransmissions, it returns the one whose delay is closest to the usual delay.
func (m *merger) find(f *mergedFlow, key uint64, u *pcapng.Unit, id uint16, at int64, station int) *heldPacket {
	var best *heldPacket
	least := int64(mergeWindow)
	for _, p := range m.pending[key] {
		if p.flow != f || p.seen&(1<<f.route[station].vantage) != 0 || p.unit.Wire() != u.Wire() ||
			f.byID && p.id != 0 && id != 0 && p.id != id {
			continue
		}
		n := min(len(p.unit.Data), len(u.Data))
		if !bytes.Equal(p.unit.Data[:n], u.Data[:n]) {
			continue
		}
		late := at - p.at - (f.route[station].delay - f.route[p.first].delay)
		if late = max(late, -late); late <= least {
			best, least = p, late-1
		}
	}
	return best
}

// forget removes a packet from pending.
func (m *merger) forget(p *heldPacket) {
	list := m.pending[p.key]
	i := slices.Index(list, p)
	if i < 0 {
		return
	}
	if list = slices.Delete(list, i, i+1); len(list) == 0 {
		delete(m.pending, p.key)
		return
	}
	m.pending[p.key] = list
}

// hold adds a packet to the queue.
func (m *merger) hold(u *pcapng.Unit) *heldPacket {
	var p *heldPacket
	if n := len(m.free); n > 0 {
		p, m.free = m.free[n-1], m.free[:n-1]
	} else {
		p = &heldPacket{}
	}
	p.unit, p.data = *u, append(p.data[:0], u.Data...)
	p.unit.Data, p.trail = p.data, p.trail[:0]
	m.heldData += len(p.data)
	if m.head > maxHeld/2 {
		m.queue = slices.Delete(m.queue, 0, m.head)
		m.head = 0
	}
	m.queue = append(m.queue, p)
	return p
}

// holdSegment adds a segment of a TCP stream to the queue. All vantage points share one stream: the reassembler ignores
// segments seen before.
func (m *merger) holdSegment(r *vantageReader) {
	seg := r.src.decoder.segment
	p := m.hold(&pcapng.Unit{Data: seg.data})
	p.flow, p.seg = nil, seg
	p.seg.data, p.seg.time = p.data, time.Unix(0, r.at).UTC()
	p.at = r.at
}

// decide returns the fate of p, the first packet of the queue. decided is false if the fate is not known yet.
func (m *merger) decide(p *heldPacket) (fate pcapng.Fate, from, to int, decided bool) {
	f := p.flow
	if f == nil || len(f.route) < 2 || p.first < 0 {
		return pcapng.FateUnknown, 0, 0, true
	}
	if len(p.trail) == len(f.route) {
		return pcapng.Delivered, 0, 0, true
	}
	if waited := m.now - p.at; m.err == nil && waited <= int64(mergeWindow) {
		if len(m.queue)-m.head <= maxHeld && m.heldData <= maxHeldData {
			return pcapng.FateUnknown, 0, 0, false
		}
		if waited <= int64(leastWindow) {
			m.undecided++
			return pcapng.FateUnknown, 0, 0, true
		}
	}
	if !f.ordered {
		return pcapng.FateUnknown, 0, 0, true
	}
	last := p.first // along the route
	for i := len(f.route) - 1; i > last; i-- {
		if p.seen&(1<<f.route[i].vantage) != 0 {
			last = i
		}
	}
	for i := last + 1; i < len(f.route); i++ {
		if m.recorded(p, i) {
			return pcapng.Lost, f.route[last].vantage, f.route[i].vantage, true
		}
	}
	// Only an IP identification distinguishes a copy from an equal packet of another message. The first vantage point
	// may not have recorded that packet.
	if at, again := m.recent[p.copyKey()]; again && f.byID && p.id != 0 && p.at-at <= int64(meetWindow) {
		for i := p.first - 1; i >= 0; i-- {
			if m.recorded(p, i) {
				return pcapng.Copied, f.route[i].vantage, f.route[p.first].vantage, true
			}
		}
	}
	return pcapng.FateUnknown, 0, 0, true
}

// recorded reports whether a packet would have been recorded at a station of its route.
func (m *merger) recorded(p *heldPacket, i int) bool {
	s := p.flow.route[i]
	v := m.vantages[s.vantage]
	if v.dropped() > 0 {
		return false
	}
	at := p.at + s.delay - p.flow.route[p.first].delay
	return v.covers(at + (at - v.toReference(at)))
}

// give removes the first packet from the queue and stores it in u. It returns false for a TCP segment that does not
// complete a unit.
func (m *merger) give(u *pcapng.Unit, fate pcapng.Fate, from, to int) bool {
	p := m.queue[m.head]
	m.queue[m.head] = nil
	if m.head++; m.head == len(m.queue) {
		m.queue, m.head = m.queue[:0], 0
	}
	m.heldData -= len(p.data)
	if m.free = append(m.free, p); p.flow == nil {
		return m.giveSegment(u, p)
	}
	m.forget(p)
	m.remember(p)
	m.number++
	m.units++
	m.packets++
	if len(p.trail) > 1 {
		m.common++
	} else {
		m.readers[bits.TrailingZeros64(p.seen)].only++
	}
	*u = p.unit
	slices.SortStableFunc(p.trail, func(a, b pcapng.Sighting) int { return a.Time.Compare(b.Time) })
	m.trail = pcapng.Trail{Seen: p.trail, Fate: fate}
	if fate == pcapng.Lost || fate == pcapng.Copied {
		m.trail.From, m.trail.To = m.nameAt(from, p), m.nameAt(to, p)
		if fate == pcapng.Lost {
			m.miss(m.trail.From, m.trail.To)
		}
	}
	u.Packet, u.Time, u.Trail = m.number, time.Unix(0, p.at).UTC(), &m.trail
	return true
}

// giveSegment passes a segment to the reassembler, and reports whether u has a unit.
func (m *merger) giveSegment(u *pcapng.Unit, p *heldPacket) bool {
	m.tcp.expire(p.seg.time)
	switch m.tcp.add(p.seg.tcpFlow, p.seg.tcpSegment, p.seg.syn, u) {
	case gotUnit:
		m.number++
		m.units++
		m.packets++
		u.Packet, u.Trail = m.number, nil
		return true
	case skipNoData:
		m.skipped++
	}
	return false
}

// remember records the delivery of a datagram, to recognize copies.
func (m *merger) remember(p *heldPacket) {
	if !p.flow.byID || p.id == 0 {
		return
	}
	const most = 1 << 16
	for len(m.given) > 0 && (len(m.given) > most || p.at-m.given[0].at > int64(meetWindow)) {
		if old := m.given[0]; m.recent[old.key] == old.at {
			delete(m.recent, old.key)
		}
		m.given = m.given[1:]
	}
	m.recent[p.copyKey()] = p.at
	m.given = append(m.given, givenPacket{p.copyKey(), p.at})
}

// copyKey returns a key shared only by copies of a packet with an IP identification.
func (p *heldPacket) copyKey() uint64 { return identifiedKey(p.key, p.id) }

// nameAt returns the name of the file that was being recorded at a vantage point when a packet passed.
func (m *merger) nameAt(vantage int, p *heldPacket) string {
	v := m.vantages[vantage]
	at := p.at + (p.at - v.toReference(p.at))
	name := m.names[v.files[0]]
	for _, s := range v.files {
		if s.begin <= at {
			name = m.names[s]
		}
	}
	return name
}

// miss counts a packet that is in recording from but missing in recording to.
func (m *merger) miss(from, to string) {
	for _, l := range m.missing {
		if l.From == from && l.To == to {
			l.Packets++
			return
		}
	}
	m.missing = append(m.missing, &Missing{from, to, 1})
}

// Stats implements Source.
func (m *merger) Stats() Stats {
	s := Stats{Units: m.units}
	for _, r := range m.readers {
		part := r.stats
		if r.src != nil {
			now := r.src.Stats()
			part.add(&now)
		}
		s.add(&part)
	}
	if s.Skipped == nil {
		s.Skipped = map[string]int64{}
	}
	if m.skipped > 0 {
		s.Skipped[skipNames[skipNoData]] += m.skipped
	}
	s.Joined = m.joined()
	return s
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
