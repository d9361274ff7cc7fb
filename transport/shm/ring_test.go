package shm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// next is like nextInto, but returns the location of the payload.
func (r *reader) next() (packet []byte, a remotePayload, err error) {
	packet, err = r.nextInto(&a)
	return packet, a, err
}

// newRing returns both sides of a ring of n bytes.
func newRing(n int) (*writer, *reader) {
	mem := make([]byte, pageAhead+n)
	ring, slots := mem[pageAhead:], make([]byte, slotsLen)
	return &writer{ring: ring, head: wordAt(mem), adverts: advertTable{slots: slots}},
		&reader{ring: ring, head: wordAt(mem), slots: slots}
}

const (
	pageAhead = 4096
	// longest is the longest packet in a ring of MinRing bytes.
	longest = protocol.ExtHeaderLen + MinRing/4
)

func whole(p mpe.Packet) []byte { return append(p.Header[:], p.Payload...) }

// TestRing checks that packets are read as they were written, for lengths that end anywhere in a record, and
// many times around the ring.
func TestRing(t *testing.T) {
	w, r := newRing(MinRing)
	rng := rand.New(rand.NewPCG(1, 2))
	var expected [][]byte
	full, padded := 0, 0
	for number := uint32(0); w.pos < 50*MinRing; {
		n := rng.IntN(300)
		if rng.IntN(4) == 0 {
			n = rng.IntN(MaxPayload + 1)
		}
		p := transporttest.Packet(0, 1, number, n)
		off := int(w.pos % MinRing)
		if w.put(&p.Header, p.Payload) {
			if int(w.pos%MinRing) == recordLen(protocol.ExtHeaderLen+n) && off != 0 {
				padded++
			}
			number++
			expected = append(expected, whole(p))
			if rng.IntN(5) > 0 {
				continue
			}
		} else {
			full++
		}
		for range rng.IntN(8) {
			got, _, err := r.next()
			if err != nil {
				t.Fatal(err)
			}
			if got == nil {
				if len(expected) > 0 {
					t.Fatalf("nothing to be read, and %d packets are in the ring", len(expected))
				}
				break
			}
			if !bytes.Equal(got, expected[0]) || cap(got) != len(got) {
				t.Fatalf("%d bytes, cap %d, want %d", len(got), cap(got), len(expected[0]))
			}
			expected = expected[1:]
		}
		r.release()
	}
	if full < 10 || padded < 10 {
		t.Errorf("it was full %d times, and padded %d times", full, padded)
	}
}

// TestShortRing checks that short packets are read correctly between other packets. This must hold even if old
// payload looks like the word of the next record, or if words that were cleared ahead come after a longer
// record.
func TestShortRing(t *testing.T) {
	w, r := newRing(MinRing)
	rng := rand.New(rand.NewPCG(3, 4))
	type expectation struct {
		bytes []byte
		short bool
	}
	var expected []expectation
	full := 0
	for number := uint32(0); w.pos < 50*MinRing; number++ {
		n := rng.IntN(200)
		if rng.IntN(20) == 0 {
			n = rng.IntN(MaxPayload + 1)
		}
		p := transporttest.Packet(0, 1, number, n)
		// These are the words in the same places one round later.
		for at := 0; at+wordLen <= len(p.Payload); at += wordLen {
			binary.LittleEndian.PutUint64(p.Payload[at:],
				recordWord(w.pos&^(recordAlign-1)+MinRing+uint64(at)&^(recordAlign-1), protocol.ShortHeaderLen|shortBit))
		}
		h := protocol.ShortHeader{Number: number, Tag: 7}
		e := expectation{whole(p), rng.IntN(3) > 0}
		var ok bool
		if e.short {
			e.bytes = make([]byte, protocol.ShortHeaderLen)
			h.Put((*[protocol.ShortHeaderLen]byte)(e.bytes))
			e.bytes = append(e.bytes, p.Payload...)
			ok = w.putShort(&h, p.Payload)
			w.prepare()
		} else {
			ok = w.put(&p.Header, p.Payload)
		}
		if ok {
			if expected = append(expected, e); rng.IntN(5) > 0 {
				continue
			}
		} else {
			full++
		}
		for range rng.IntN(8) {
			got, a, err := r.next()
			if err != nil {
				t.Fatal(err)
			}
			if len(expected) == 0 {
				if got != nil {
					t.Fatalf("%d bytes, and nothing was sent", len(got))
				}
				break
			}
			if !bytes.Equal(got, expected[0].bytes) || a.isShort != expected[0].short {
				t.Fatalf("%d bytes, short: %v; want %d, %v", len(got), a.isShort, len(expected[0].bytes),
					expected[0].short)
			}
			expected = expected[1:]
		}
		r.release()
	}
	if full < 10 {
		t.Errorf("it was full %d times", full)
	}
}

// TestBadShortRecord checks that an impossible length of a short packet is rejected.
func TestBadShortRecord(t *testing.T) {
	for _, length := range []uint32{0, protocol.ShortHeaderLen - 1, protocol.ShortHeaderLen + MaxPayload + 1,
		1<<29 - 1} {
		w, r := newRing(MinRing)
		wordAt(w.ring).Store(recordWord(0, length|shortBit))
		if got, _, err := r.next(); got != nil || !errors.Is(err, errCorruptRing) {
			t.Errorf("%d: %d bytes, %v", length, len(got), err)
		}
	}
}

// TestFullRing checks that a ring without a reader accepts only the packets that fit, and keeps them.
func TestFullRing(t *testing.T) {
	for _, payload := range []int{0, 4, 48, 49, 1000, MaxPayload} {
		w, r := newRing(MinRing)
		var sent []mpe.Packet
		for {
			p := transporttest.Packet(0, 1, uint32(len(sent)), payload)
			if !w.put(&p.Header, p.Payload) {
				break
			}
			sent = append(sent, p)
		}
		record := recordLen(protocol.ExtHeaderLen + payload)
		if len(sent)*record > MinRing-recordAlign || (len(sent)+1)*record <= MinRing-recordAlign {
			t.Errorf("%d packets of %d bytes of payload", len(sent), payload)
		}
		for i, p := range sent {
			if got, _, err := r.next(); err != nil || !bytes.Equal(got, whole(p)) {
				t.Fatalf("packet %d of %d: %d bytes, %v", i, len(sent), len(got), err)
			}
		}
		if got, _, err := r.next(); got != nil || err != nil || r.ready() {
			t.Errorf("there is more: %d bytes, %v", len(got), err)
		}
		r.release()
		if p := sent[0]; !w.put(&p.Header, p.Payload) {
			t.Error("it is still full")
		}
	}
}

// TestWindowFits checks that Window leaves enough space for everything that the extended profile can have in
// flight, for its acknowledgements, and for packets that Poll has not released yet.
func TestWindowFits(t *testing.T) {
	for ring := MinRing; ring <= MaxRing; ring *= 2 {
		packets, payload := Window(ring)
		most := payload + packets*(wordLen+protocol.ExtHeaderLen+recordAlign) + // in flight
			recordLen(protocol.ExtHeaderLen+MaxPayload) + // padding
			ring/publishParts + maxPollBytes(ring) + recordLen(protocol.ExtHeaderLen+MaxPayload) // read and not released
		if acks := (ring - most) / recordLen(protocol.ExtHeaderLen+protocol.AckLen); acks < 64 {
			t.Errorf("a ring of %d bytes fits %d acknowledgements", ring, acks)
		}
		if payload < 2*MaxPayload {
			t.Errorf("a ring of %d bytes: only %d in flight", ring, payload)
		}
	}
	for ranks, want := range map[int]int{0: 1 << 20, 1: 1 << 20, 2: 1 << 20, 17: 1 << 20, 18: 512 << 10, 33: 512 << 10,
		34: 256 << 10, 1000: 256 << 10} {
		if got := DefaultRing(ranks); got != want || !isRingSize(got) {
			t.Errorf("%d ranks: rings of %d bytes, want %d", ranks, got, want)
		}
	}
}

// hostile contains invalid words.
var hostile = map[string]uint64{
	"another position":           recordWord(recordAlign, 100),
	"no header":                  recordWord(0, protocol.ExtHeaderLen-1),
	"too long":                   recordWord(0, longest+1),
	"a long descriptor":          recordWord(0, descriptorBit|(protocol.ExtHeaderLen+descriptorLen+1)),
	"a short descriptor":         recordWord(0, descriptorBit|(protocol.ExtHeaderLen+descriptorLen-1)),
	"an empty descriptor":        recordWord(0, descriptorBit|(protocol.ExtHeaderLen+descriptorLen)),
	"a short advertised buffer":  recordWord(0, advertBit|(protocol.ExtHeaderLen+descriptorLen-1)),
	"an empty advertised buffer": recordWord(0, advertBit|(protocol.ExtHeaderLen+descriptorLen)),
	"both":                       recordWord(0, advertBit|descriptorBit|(protocol.ExtHeaderLen+descriptorLen)),
	"longest":                    recordWord(0, paddingLength-1),
	"padding at once":            recordWord(0, paddingLength),
	"all ones":                   ^uint64(0),
}

func TestHostileWords(t *testing.T) {
	for name, w := range hostile {
		_, r := newRing(MinRing)
		wordAt(r.ring).Store(w)
		if b, _, err := r.next(); b != nil || err == nil {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
	// First a packet that ends beyond the ring, then padding after padding.
	_, r := newRing(MinRing)
	r.pos = MinRing - recordAlign
	wordAt(r.ring[r.pos:]).Store(recordWord(r.pos, 100))
	if b, _, err := r.next(); b != nil || err == nil {
		t.Errorf("over the end: %d bytes, %v", len(b), err)
	}
	wordAt(r.ring[r.pos:]).Store(recordWord(r.pos, paddingLength))
	wordAt(r.ring).Store(recordWord(MinRing, paddingLength))
	if b, _, err := r.next(); b != nil || err == nil {
		t.Errorf("padding after padding: %d bytes, %v", len(b), err)
	}
	// The reader claims to have read more than was written, or less than before.
	for _, head := range []uint64{1 << 40, ^uint64(0)} {
		w, _ := newRing(MinRing)
		w.head.Store(head)
		taken := 0
		for p := transporttest.Packet(0, 1, 1, MaxPayload); w.put(&p.Header, p.Payload); taken++ {
			if taken > MinRing/MaxPayload {
				t.Fatal("it is never full")
			}
		}
	}
}

// FuzzReader reads from rings with arbitrary content: it must not panic, read outside the ring, or loop
// forever.
func FuzzReader(f *testing.F) {
	w, _ := newRing(MinRing)
	p := transporttest.Packet(0, 1, 1, 30)
	w.put(&p.Header, p.Payload)
	w.put(&p.Header, nil)
	w.expose(&p.Header, p.Payload, 1)
	w.advertise(&p.Header, p.Payload, 1)
	f.Add(w.ring[:512], uint32(0))
	f.Add(w.ring[:512], uint32(MinRing-128))
	for _, w := range hostile {
		b := make([]byte, 128)
		wordAt(b).Store(w)
		f.Add(b, uint32(0))
	}
	f.Fuzz(func(t *testing.T, content []byte, at uint32) {
		_, r := newRing(MinRing)
		r.pos = uint64(at) &^ (recordAlign - 1)
		r.published = r.pos
		for i, b := range content {
			r.ring[(int(r.pos)+i)%MinRing] = b
		}
		for n := 0; ; n++ {
			b, a, err := r.next()
			if b == nil || err != nil {
				break
			}
			if len(b) < protocol.ExtHeaderLen || len(b) > longest || cap(b) != len(b) {
				t.Fatalf("a packet of %d bytes", len(b))
			}
			if a.state != nil && (len(b) != protocol.ExtHeaderLen || a.payloadLen == 0 || a.payloadLen > maxSingleCopy ||
				a.payloadLen > MinRing/4 && !a.isAdvertised) {
				t.Fatalf("a header of %d bytes, and %d of payload are away", len(b), a.payloadLen)
			}
			if n > 2*MinRing/recordAlign {
				t.Fatal("the reader does not terminate")
			}
		}
		r.release()
	})
}
