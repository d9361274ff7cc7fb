package mpe_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/memnet"
)

// The test in this file runs random programs of posts, arrivals, wildcards, cancels and probes on complete engines,
// and compares the results with a reference that searches lists. Rank 0 receives. The other ranks send: one rank
// for each profile, and a second extended one. After each step, the engines become idle, and the set of completed
// operations must be the same as in the reference.

const (
	diffRanks = 5
	diffComms = 2
	diffTags  = 4
)

// diffMessage and diffRecv are operations of the reference.
type diffMessage struct {
	id              uint32
	src, tag        int
	comm            uint32
	bytes           int
	sync            bool
	op              mpe.Op
	announced, done bool
}

type diffRecv struct {
	src, tag int
	comm     uint32
	buf      []byte
	op       mpe.Op
	got      *diffMessage
	cancel   bool
}

type differential struct {
	t       *testing.T
	engines []*mpe.Engine
	rng     *rand.Rand
	nextID  uint32
	sends   [diffRanks][]*diffMessage // by source, pending, in order
	queue   []*diffMessage            // announced and unmatched, in order
	posted  []*diffRecv
	check   []*diffRecv    // matched in this step
	sent    []*diffMessage // completed in this step
}

func newDifferential(t *testing.T, seed uint64) *differential {
	net := memnet.New(diffRanks)
	d := &differential{t: t, rng: rand.New(rand.NewPCG(seed, 7))}
	for rank := range diffRanks {
		cfg, tr := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, diffRanks)}, net.Transport(rank)
		for p := range diffRanks {
			cfg.Peers[p].Transport = tr
			hs := handshake.Config{Shape: protocol.CPUShape(), Timing: handshake.DefaultTiming(handshake.PeerRules{}),
				MaxWords: 1 << 20}
			switch max(rank, p) {
			case 1:
			case 2:
				hs.Profile = protocol.V09
			default:
				cfg.Peers[p].Extended = &extended.Config{Seed: seed*100 + uint64(rank*diffRanks+p) + 1,
					EagerLimit: 2000}
			}
			cfg.Peers[p].Handshake = hs
		}
		e, err := mpe.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		d.engines = append(d.engines, e)
	}
	return d
}

func extendedRank(rank int) bool { return rank >= 3 }

// step runs one random step, on the engines and on the reference.
func (d *differential) step() {
	switch k := d.rng.IntN(100); {
	case k < 40:
		d.send()
	case k < 85:
		d.post()
	case k < 92:
		d.cancelRecv()
	case k < 95:
		d.cancelSend()
	default:
		d.probe()
	}
}

func (d *differential) send() {
	m := &diffMessage{id: d.nextID, src: 1 + d.rng.IntN(diffRanks-1), bytes: 4 * (1 + d.rng.IntN(8))}
	d.nextID++
	if d.rng.IntN(10) == 0 {
		m.bytes = 4 * (1 + d.rng.IntN(2000))
	}
	if m.src != 1 {
		m.tag = d.rng.IntN(diffTags)
	}
	kind := mpe.OpSend
	if extendedRank(m.src) {
		m.comm = uint32(2 * d.rng.IntN(diffComms))
		m.sync = d.rng.IntN(4) == 0
		if m.sync {
			kind = mpe.OpSendSync
		}
	} else {
		m.sync = true // a send by handshake is always synchronous
	}
	buf := make([]byte, m.bytes)
	binary.LittleEndian.PutUint32(buf, m.id)
	m.op = start(d.t, d.engines[m.src], mpe.Operation{Kind: kind, Peer: 0, Tag: m.tag, Comm: m.comm, Buf: buf})
	d.sends[m.src] = append(d.sends[m.src], m)
	d.arrive(m.src)
}

// arrive announces the messages from a source: all messages if the source is extended, otherwise one at a time.
func (d *differential) arrive(src int) {
	for i := 0; i < len(d.sends[src]); i++ {
		m := d.sends[src][i]
		if m.announced {
			if !extendedRank(src) {
				return
			}
			continue
		}
		m.announced = true
		if r := d.match(m); r != nil {
			d.join(r, m)
			i = -1
			continue
		}
		d.queue = append(d.queue, m)
		if !extendedRank(src) {
			return
		}
	}
}

func (r *diffRecv) fits(m *diffMessage) bool {
	return r.comm == m.comm && (r.src == mpe.AnySource || r.src == m.src) &&
		(r.tag == mpe.AnyTag || r.tag == m.tag || r.src == 1 && m.src == 1)
}

func (d *differential) match(m *diffMessage) *diffRecv {
	for i, r := range d.posted {
		if r.fits(m) {
			d.posted = slices.Delete(d.posted, i, i+1)
			return r
		}
	}
	return nil
}

func (d *differential) join(r *diffRecv, m *diffMessage) {
	r.got, m.done = m, true
	d.check = append(d.check, r)
	d.sent = append(d.sent, m)
	i := slices.Index(d.sends[m.src], m)
	d.sends[m.src] = slices.Delete(d.sends[m.src], i, i+1)
}

func (d *differential) post() {
	r := &diffRecv{src: 1 + d.rng.IntN(diffRanks-1), tag: d.rng.IntN(diffTags), buf: make([]byte, 8000)}
	if d.rng.IntN(3) == 0 {
		r.src, r.tag = mpe.AnySource, mpe.AnyTag
	} else if d.rng.IntN(3) == 0 {
		r.tag = mpe.AnyTag
	}
	if extendedRank(r.src) || r.src == mpe.AnySource {
		r.comm = uint32(2 * d.rng.IntN(diffComms))
		if r.comm != 0 && r.src == mpe.AnySource && d.rng.IntN(2) == 0 {
			r.tag = d.rng.IntN(diffTags)
		}
	}
	r.op = start(d.t, d.engines[0], mpe.Operation{Kind: mpe.OpRecv, Peer: r.src, Tag: r.tag, Comm: r.comm, Buf: r.buf})
	for i, m := range d.queue {
		if r.fits(m) {
			d.queue = slices.Delete(d.queue, i, i+1)
			d.join(r, m)
			d.arrive(m.src)
			return
		}
	}
	d.posted = append(d.posted, r)
}

func (d *differential) cancelRecv() {
	if len(d.posted) == 0 {
		return
	}
	i := d.rng.IntN(len(d.posted))
	r := d.posted[i]
	d.posted = slices.Delete(d.posted, i, i+1)
	r.op.Cancel()
	r.cancel = true
	d.check = append(d.check, r)
}

// cancelSend cancels a message that no receive has matched. An eager message stays, because it is complete for its
// sender.
func (d *differential) cancelSend() {
	for i, m := range d.queue {
		if !extendedRank(m.src) || d.rng.IntN(3) > 0 {
			continue
		}
		m.op.Cancel()
		if m.sync || m.bytes > 2000 {
			d.queue = slices.Delete(d.queue, i, i+1)
			d.sends[m.src] = slices.DeleteFunc(d.sends[m.src], func(o *diffMessage) bool { return o == m })
			synctest.Wait()
			time.Sleep(5 * time.Millisecond)
			if _, ok, err := m.op.Test(); !ok || !errors.Is(err, mpe.ErrCancelled) {
				d.t.Fatalf("cancelled send %d: %v, %v", m.id, ok, err)
			}
		}
		return
	}
}

func (d *differential) probe() {
	want := mpe.Match{Source: mpe.AnySource, Tag: mpe.AnyTag, Comm: uint32(2 * d.rng.IntN(diffComms))}
	if d.rng.IntN(2) == 0 {
		want.Source = 3 + d.rng.IntN(2)
		want.Tag = d.rng.IntN(diffTags)
	}
	st, ok, err := d.engines[0].Probe(d.t.Context(), want, false)
	if err != nil {
		d.t.Fatal(err)
	}
	r := diffRecv{src: want.Source, tag: want.Tag, comm: want.Comm}
	i := slices.IndexFunc(d.queue, r.fits)
	if ok != (i >= 0) {
		d.t.Fatalf("probe %+v: found %v, %+v; the reference's queue has it at %d", want, ok, st, i)
	}
	if !ok {
		return
	}
	m := d.queue[i]
	length := int64(m.bytes)
	if !extendedRank(m.src) {
		length = mpe.UnknownLength
	}
	if st.Peer != m.src || st.Tag != m.tag || st.Bytes != length {
		d.t.Fatalf("probe %+v: found %+v, the reference message %d of %d bytes from %d with tag %d", want, st, m.id,
			m.bytes, m.src, m.tag)
	}
}

// verify compares the operations completed since the last step.
func (d *differential) verify() {
	time.Sleep(5 * time.Millisecond)
	synctest.Wait()
	for _, r := range d.check {
		st, ok, err := r.op.Test()
		if r.cancel {
			if !ok || !errors.Is(err, mpe.ErrCancelled) {
				d.t.Fatalf("cancelled receive: %v, %v", ok, err)
			}
			continue
		}
		if !ok || err != nil {
			d.t.Fatalf("receive of (%d, %d, %d) should have message %d: ended %v, %v", r.src, r.tag, r.comm, r.got.id,
				ok, err)
		}
		id := binary.LittleEndian.Uint32(r.buf)
		tag := r.got.tag
		if r.got.src == 1 && r.tag != mpe.AnyTag {
			tag = r.tag
		}
		if id != r.got.id || st.Bytes != int64(r.got.bytes) || st.Peer != r.got.src || st.Tag != tag {
			d.t.Fatalf("receive of (%d, %d, %d) got message %d: %+v, should have %+v", r.src, r.tag, r.comm, id, st,
				r.got)
		}
	}
	for _, m := range d.sent {
		if _, ok, err := m.op.Test(); !ok || err != nil {
			d.t.Fatalf("send %d: ended %v, %v", m.id, ok, err)
		}
	}
	d.check, d.sent = d.check[:0], d.sent[:0]
	for _, r := range d.posted {
		if ended(r.op) {
			d.t.Fatalf("receive of (%d, %d, %d) ended, and nothing fits it", r.src, r.tag, r.comm)
		}
	}
	for _, m := range d.queue {
		if m.sync && ended(m.op) {
			d.t.Fatalf("synchronous send %d ended without a receive", m.id)
		}
	}
	s := d.engines[0].Snapshot()
	if s.Posted != len(d.posted) || s.Unexpected != len(d.queue) {
		d.t.Fatalf("%d receives and %d messages wait, in the reference %d and %d", s.Posted, s.Unexpected,
			len(d.posted), len(d.queue))
	}
}

// TestDifferential runs ZRLMPI_DIFFERENTIAL_STEPS steps; `make soak` sets it to a million.
func TestDifferential(t *testing.T) {
	steps := 20_000
	if s := os.Getenv("ZRLMPI_DIFFERENTIAL_STEPS"); s != "" {
		var err error
		if steps, err = strconv.Atoi(s); err != nil {
			t.Fatalf("ZRLMPI_DIFFERENTIAL_STEPS=%q is not a number of steps", s)
		}
	}
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDifferential(t, seed+1)
				defer (&cluster{t: t, engines: d.engines}).close()
				for range steps / 8 {
					d.step()
					d.verify()
				}
			})
		})
	}
}
