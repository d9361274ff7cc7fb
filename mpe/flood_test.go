package mpe_test

import (
	"bytes"
	"context"
	"net/netip"
	"runtime"
	"sync"
	"testing"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// flood is a transport that delivers the same packets a number of times, and then some others.
type flood struct {
	batch  []mpe.RxPacket
	rounds int
	then   []mpe.RxPacket
	closed chan struct{}
	once   sync.Once
	idle   chan struct{} // closed when all packets have been read
}

func (f *flood) LocalAddr() netip.AddrPort                          { return netip.AddrPort{} }
func (f *flood) Reliable() bool                                     { return false }
func (f *flood) SendHeader(int, []byte) error                       { return nil }
func (f *flood) SendData(int, []byte, []byte, protocol.Shape) error { return nil }
func (f *flood) SendPackets(int, []mpe.Packet) (int, error)         { return 0, nil }

func (f *flood) Close() error {
	f.once.Do(func() { close(f.closed) })
	return nil
}

func (f *flood) Recv(batch []mpe.RxPacket) (int, error) {
	switch {
	case f.rounds > 0:
		f.rounds--
		return copy(batch, f.batch), nil
	case len(f.then) > 0:
		n := copy(batch, f.then)
		f.then = f.then[n:]
		return n, nil
	case f.idle != nil:
		close(f.idle)
		f.idle = nil
	}
	<-f.closed
	return 0, mpe.ErrTransportClosed
}

// TestBadPacketsCostNoMemory floods a rank in the middle of a message with every kind of bad packet. Nothing
// may be allocated for them, each must be counted, and the message must arrive.
func TestBadPacketsCostNoMemory(t *testing.T) {
	const rounds = 20_000
	good := func(typ protocol.Type, size uint32, payload []byte) []byte {
		h := protocol.Header{Src: 1, Dst: 0, Call: protocol.SendInt, Type: typ, Size: size}
		return append(protocol.CloudFPGA.Append(nil, h), payload...)
	}
	edit := func(at int, to byte) []byte {
		b := good(protocol.SendRequest, 0, nil)
		b[at] = to
		return b
	}
	bad := map[state.DropReason][]byte{
		state.DropStartMark:   edit(0, 0),
		state.DropEndMark:     edit(31, 0),
		state.DropReserved:    edit(20, 1),
		state.DropSourceRank:  edit(8, 7),
		state.DropDestination: edit(4, 9),
		state.DropCall:        edit(16, 77),
		state.DropType:        edit(17, 77),
		state.DropShort:       good(protocol.Ack, 0, nil)[:20],
		state.DropLength:      append(good(protocol.SendRequest, 0, nil), 0, 0, 0, 0),
		state.DropSize:        good(protocol.Data, 0xFFFFFFFF, make([]byte, 1384)),
	}
	data := words(3, 5)
	f := &flood{rounds: rounds, closed: make(chan struct{}), idle: make(chan struct{})}
	add := func(b []byte) mpe.RxPacket { return mpe.RxPacket{Kind: mpe.RxDatagram, Peer: 1, Bytes: b} }
	for _, b := range bad {
		f.batch = append(f.batch, add(b))
	}
	f.batch = append(f.batch, mpe.RxPacket{Kind: mpe.RxDatagram, Peer: mpe.UnknownPeer, Bytes: bad[state.DropShort]})
	f.then = []mpe.RxPacket{add(good(protocol.SendRequest, 0, nil)), add(good(protocol.Data, 3, data))}
	idle := f.idle

	rules := handshake.FPGAPeer(1)
	hs := handshake.Config{Peer: rules, Shape: protocol.CPUShape(), Timing: handshake.DefaultTiming(rules),
		MaxWords: 1 << 20}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	e, err := mpe.New(mpe.Config{Rank: 0, Peers: []mpe.Peer{{}, {Handshake: hs, Transport: f}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.Background())
	buf := make([]byte, 12)
	r, err := e.Irecv(1, buf, mpe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	<-idle
	runtime.ReadMemStats(&after)
	if _, err := r.Wait(t.Context()); err != nil || !bytes.Equal(buf, data) {
		t.Errorf("the message: %v, intact %v", err, bytes.Equal(buf, data))
	}
	packets := uint64(rounds * len(f.batch))
	if allocs := after.Mallocs - before.Mallocs; allocs > packets/100 {
		t.Errorf("%d allocations for %d bad packets", allocs, packets)
	}
	s := e.Snapshot()
	for reason := range bad {
		if n := s.Peers[0].Dropped[reason]; n != rounds {
			t.Errorf("%v was counted %d times, not %d", reason, n, rounds)
		}
	}
	if n := s.Dropped[state.DropUnknownAddress]; n != rounds {
		t.Errorf("unknown_address was counted %d times, not %d", n, rounds)
	}
}
