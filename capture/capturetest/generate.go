package capturetest

import (
	"encoding/binary"
	"io"
	"math/rand/v2"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Generated contains the totals of a recording written by Generate.
type Generated struct {
	Packets, Messages, Bytes int64
}

const (
	generatedPairs = 32
	generatedChunk = 256 << 10
	// nsPerByte is the time, in nanoseconds, to transmit a byte at 10 Gbit/s.
	nsPerByte = 0.8
)

// generatedStart is the start time of generated recordings.
var generatedStart = time.Date(2024, 5, 17, 9, 0, 0, 0, time.UTC)

// Generate writes a pcap file of about size bytes. 32 pairs of ranks with addresses from 10.12.0.1 exchange messages of
// 1 to 50,000 ints or floats in both directions. All handshakes are complete and free of errors. The file depends only
// on size and seed.
func Generate(w io.Writer, size int64, seed uint64) (Generated, error) {
	g := newGenerator(seed)
	var done Generated
	for {
		// Select the pair whose next packet is due first.
		var pair *generatedPair
		for i := range g.pairs {
			q := &g.pairs[i]
			if (pair == nil || q.at < pair.at) && (q.step != stepRequest || done.Bytes+int64(len(g.out)) < size) {
				pair = q
			}
		}
		if pair == nil || len(g.out) > generatedChunk {
			n, err := w.Write(g.out)
			done.Bytes += int64(n)
			if err != nil || pair == nil {
				return done, err
			}
			g.out = g.out[:0]
			continue
		}
		if g.writeNext(pair) {
			done.Messages++
		}
		done.Packets++
	}
}

// generator is the state of Generate.
type generator struct {
	rand    *rand.Rand
	out     []byte
	payload []byte
	pairs   [generatedPairs]generatedPair
}

// generatedPair is a pair of ranks together with the message that the two currently exchange.
type generatedPair struct {
	at    time.Duration // of the next packet, since the start
	ranks [2]uint32     // sender, receiver
	step  generatedStep
	call  protocol.Call
	words uint32
	sent  int64
}

// generatedStep is the type of the packet that a pair sends next.
type generatedStep uint8

const (
	stepRequest generatedStep = iota
	stepClear
	stepData
	stepAck
)

func newGenerator(seed uint64) *generator {
	g := &generator{rand: rand.New(rand.NewPCG(seed, 1))}
	g.out = appendPcapHeader(make([]byte, 0, generatedChunk+2048), binary.LittleEndian, 0xa1b23c4d, Ethernet)
	g.payload = make([]byte, 1<<16)
	for i := 0; i < len(g.payload); i += 8 {
		binary.LittleEndian.PutUint64(g.payload[i:], g.rand.Uint64())
	}
	for i := range g.pairs {
		g.pairs[i].ranks = [2]uint32{uint32(2 * i), uint32(2*i + 1)}
		g.pairs[i].at = g.randomDuration(0, time.Millisecond)
	}
	return g
}

func (g *generator) randomDuration(from, to time.Duration) time.Duration {
	return from + time.Duration(g.rand.Int64N(int64(to-from)))
}

// randomWords returns a random message length in words. Most messages are short, some are long.
func (g *generator) randomWords() uint32 {
	switch k := g.rand.IntN(100); {
	case k < 20:
		return 1
	case k < 50:
		return 1 + g.rand.Uint32N(346)
	case k < 85:
		return 347 + g.rand.Uint32N(5000)
	default:
		return 5000 + g.rand.Uint32N(45000)
	}
}

// writeNext writes the next packet of a pair, and reports whether the packet ends a message.
func (g *generator) writeNext(pair *generatedPair) bool {
	header := protocol.Header{Src: pair.ranks[0], Dst: pair.ranks[1]}
	switch pair.step {
	case stepRequest:
		if g.rand.IntN(2) == 0 {
			pair.ranks[0], pair.ranks[1] = pair.ranks[1], pair.ranks[0]
			header.Src, header.Dst = header.Dst, header.Src
		}
		pair.call, pair.words, pair.sent = protocol.Datatype(g.rand.IntN(2)).SendCall(), g.randomWords(), 0
		header.Type, header.Call = protocol.SendRequest, pair.call
		g.packet(pair.at, header, true, nil)
		pair.step = stepClear
		pair.at += g.randomDuration(8*time.Microsecond, 40*time.Microsecond)
		if g.rand.IntN(50) == 0 { // the receive is posted late
			pair.at += g.randomDuration(time.Millisecond, 60*time.Millisecond)
		}
	case stepClear:
		header.Src, header.Dst = header.Dst, header.Src
		header.Type, header.Call = protocol.ClearToSend, pair.call.Counterpart()
		g.packet(pair.at, header, true, nil)
		pair.step = stepData
		pair.at += g.randomDuration(5*time.Microsecond, 20*time.Microsecond)
	case stepData:
		header.Type, header.Call, header.Size = protocol.Data, pair.call, pair.words
		shape, total := protocol.CPUShape(), int64(pair.words)*protocol.WordLen
		n := shape.PayloadAt(pair.sent, total)
		from := g.rand.IntN(len(g.payload) - protocol.MaxDatagram)
		g.packet(pair.at, header, pair.sent == 0, g.payload[from:from+int(n)])
		pair.sent += n
		pair.at += time.Duration(float64(n+66)*nsPerByte) + 20
		if pair.sent == total {
			pair.step = stepAck
			pair.at += g.randomDuration(6*time.Microsecond, 30*time.Microsecond)
		}
	case stepAck:
		header.Src, header.Dst = header.Dst, header.Src
		header.Type, header.Call = protocol.Ack, pair.call.Counterpart()
		g.packet(pair.at, header, true, nil)
		pair.step = stepRequest
		pair.at += g.randomDuration(20*time.Microsecond, 2*time.Millisecond)
		return true
	}
	return false
}

// packet writes a record with one Ethernet frame, which contains one datagram.
func (g *generator) packet(at time.Duration, header protocol.Header, withHeader bool, payload []byte) {
	size := len(payload)
	if withHeader {
		size += protocol.HeaderLen
	}
	const ethernet, ip, udp = 14, 20, 8
	frame := ethernet + ip + udp + size
	t := generatedStart.Add(at)
	var r [16 + ethernet + ip + udp]byte
	binary.LittleEndian.PutUint32(r[0:], uint32(t.Unix()))
	binary.LittleEndian.PutUint32(r[4:], uint32(t.Nanosecond()))
	binary.LittleEndian.PutUint32(r[8:], uint32(frame))
	binary.LittleEndian.PutUint32(r[12:], uint32(frame))
	b := r[16:]
	b[0], b[5], b[6], b[11] = 2, byte(header.Dst), 2, byte(header.Src)
	b[12], b[13] = 8, 0
	b = b[ethernet:]
	b[0], b[8], b[9] = 0x45, 64, ProtoUDP
	binary.BigEndian.PutUint16(b[2:], uint16(ip+udp+size))
	copy(b[12:], []byte{10, 12, 0, byte(header.Src + 1)})
	copy(b[16:], []byte{10, 12, 0, byte(header.Dst + 1)})
	binary.BigEndian.PutUint16(b[10:], checksum(b[:ip]))
	b = b[ip:]
	binary.BigEndian.PutUint16(b[0:], protocol.Port)
	binary.BigEndian.PutUint16(b[2:], protocol.Port)
	binary.BigEndian.PutUint16(b[4:], uint16(udp+size))
	g.out = append(g.out, r[:]...)
	if withHeader {
		g.out = protocol.CloudFPGA.Append(g.out, header)
	}
	g.out = append(g.out, payload...)
}
