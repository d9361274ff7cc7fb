// Package replay plays one side of a recording against a live peer. It sends the packets that the rank sent, waits for
// the packets that the rank received, and compares them. It never sends anything that is not in the recording, and
// never to any other peer.
package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/udp"
)

// Config configures a replay.
type Config struct {
	// PlayedRank is the rank whose packets are sent. Peer is the live peer's rank, or -1 for the first rank that
	// exchanges packets with PlayedRank in the recording.
	PlayedRank, Peer int
	// PeerAddr is the live peer's address.
	PeerAddr netip.AddrPort
	// LocalAddr is the local address, by which the peer identifies the rank. The default is the recorded address.
	LocalAddr netip.AddrPort
	// FullSpeed makes the replay send as fast as possible, without the recorded pauses.
	FullSpeed bool
	// Timeout is the time to wait for a packet from the peer, in addition to the recorded delay.
	Timeout time.Duration
	// Linger is the time to wait at the end for packets that are not in the recording.
	Linger time.Duration
	// Profile is the dialect of the headers.
	Profile protocol.Profile
}

// Result is the result of a replay.
type Result struct {
	// Sent and Received count datagrams. They may exceed the number of recorded packets, because a packet may contain
	// several datagrams.
	Sent     int `json:"sent"`
	Received int `json:"received"`
	// ReceiveBuffer is the size in bytes of the receive buffer that the kernel granted when udp.DefaultReceiveBuffer
	// was requested. The kernel drops datagrams that do not fit in the buffer.
	ReceiveBuffer int `json:"receive_buffer"`
	// Difference is the first difference from the recording, or nil.
	Difference *Difference `json:"difference,omitempty"`
}

// Difference describes how the live peer's packet differs from the recorded packet.
type Difference struct {
	// Packet is the number of the recorded packet, or 0 if the peer sent a packet after the end of the recording.
	Packet int64 `json:"packet"`
	// Want describes the recorded packet. Got describes the packet received instead.
	Want string `json:"want,omitempty"`
	Got  string `json:"got,omitempty"`
	// Offset is the position of the first byte that differs, if two datagrams were compared.
	Offset int `json:"offset"`
}

// String describes the expected and the received packet.
func (d *Difference) String() string {
	switch {
	case d.Want == "":
		return fmt.Sprintf("behind the end of the recording came %s", d.Got)
	case d.Got == "":
		return fmt.Sprintf("packet %d, %s, did not come", d.Packet, d.Want)
	}
	return fmt.Sprintf("packet %d is %s in the recording, but %s came; byte %d is the first that differs", d.Packet,
		d.Want, d.Got, d.Offset)
}

// ErrNoPackets is returned if the recording contains no UDP packets between the two ranks.
var ErrNoPackets = errors.New("the recording has no UDP packets between these ranks")

// maxDatagrams is the maximum number of datagrams read from a recording.
const maxDatagrams = 1 << 20

// longTail is the length of the only datagram longer than protocol.MaxDatagram that a deployed node sends: the last
// datagram of certain messages from an MPE. In a recording, a datagram of this length may also be two datagrams of
// 1416 and 8 bytes, sent by an FPGA's shell, that the kernel coalesced.
const longTail = protocol.MaxDatagram + protocol.LineLen

// recordedDatagram is a datagram of the recording.
type recordedDatagram struct {
	packet     int64
	at         time.Time
	src, dst   netip.AddrPort
	isOurs     bool
	data       []byte
	unrecorded int // bytes that were not recorded
	// hasPadding is true if the datagram contains padding. mayBeTail is true if the datagram has length longTail, so
	// that it may be the last one of a message from an MPE.
	hasPadding, mayBeTail bool
}

// Run plays a recording until its end or until the first difference.
func Run(ctx context.Context, src capture.Source, cfg Config) (*Result, error) {
	list, from, err := load(src, &cfg)
	if err != nil {
		return nil, err
	}
	if !cfg.LocalAddr.IsValid() {
		cfg.LocalAddr = from
	}
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(cfg.LocalAddr))
	if err != nil {
		return nil, fmt.Errorf("rank %d cannot be played from %v: %w (give another address with --bind; a peer "+
			"identifies ranks by it)", cfg.PlayedRank, cfg.LocalAddr, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	r := &player{cfg: &cfg, conn: conn}
	if r.result.ReceiveBuffer, err = udp.SetReceiveBuffer(conn, udp.DefaultReceiveBuffer); err != nil {
		return nil, fmt.Errorf("asking for a receive buffer of %d bytes at %v: %w", udp.DefaultReceiveBuffer, cfg.LocalAddr,
			err)
	}
	err = r.play(ctx, list)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return &r.result, err
}

// load reads the datagrams that the two ranks exchanged, and determines the address of PlayedRank. It splits datagrams
// that the kernel coalesced.
func load(src capture.Source, cfg *Config) (list []recordedDatagram, from netip.AddrPort, err error) {
	var all []recordedDatagram
	var peer netip.AddrPort
	peerRank := -1
	tracker := capture.NewTracker(capture.TrackerOptions{Profile: cfg.Profile, OnEvent: func(event *capture.Event) {
		if event.Proto != pcapng.UDP || len(all) > maxDatagrams {
			return
		}
		all = append(all, recordedDatagram{
			packet: event.Packet, at: event.Time, src: event.Src, dst: event.Dst, data: bytes.Clone(event.Data),
			unrecorded: event.Length - len(event.Data),
			hasPadding: event.Padding > 0, mayBeTail: event.Length == longTail && endsWithLongTail(event),
		})
		if !event.HasRanks || peerRank >= 0 {
			return
		}
		other, mine, theirs := int(event.Header.Dst), event.Src, event.Dst
		if int(event.Header.Src) != cfg.PlayedRank {
			if int(event.Header.Dst) != cfg.PlayedRank {
				return
			}
			other, mine, theirs = int(event.Header.Src), event.Dst, event.Src
		}
		if cfg.Peer < 0 || other == cfg.Peer {
			peerRank, from, peer = other, mine, theirs
		}
	}})
	if err := tracker.ProcessAll(src); err != nil {
		return nil, from, err
	}
	if len(all) > maxDatagrams {
		return nil, from, fmt.Errorf("the recording has more than %d datagrams: cut out a part of it, for example "+
			"with zrlctl decode -w", maxDatagrams)
	}
	if peerRank < 0 {
		return nil, from, fmt.Errorf("rank %d: %w", cfg.PlayedRank, ErrNoPackets)
	}
	list, err = selectBetween(all, from, peer)
	return list, from, err
}

// endsWithLongTail reports whether the event is the last piece of a message and an MPE would send this piece as one
// datagram.
func endsWithLongTail(e *capture.Event) bool {
	shape := protocol.FPGAShape(true)
	total := shape.PayloadBytes(uint32(e.Total / protocol.WordLen))
	return e.IsLastPiece && e.Offset+shape.PayloadAt(e.Offset, total) == total
}

// selectBetween returns the datagrams between two addresses, in both directions.
func selectBetween(all []recordedDatagram, from, peer netip.AddrPort) (list []recordedDatagram, err error) {
	pads := false // an MPE pads all messages of an odd number of words
	for i := range all {
		pads = pads || all[i].src == from && all[i].hasPadding
	}
	for _, datagram := range all {
		datagram.isOurs = datagram.src == from && datagram.dst == peer
		if !datagram.isOurs && (datagram.src != peer || datagram.dst != from) {
			continue
		}
		switch {
		case datagram.unrecorded > 0:
			return nil, fmt.Errorf("packet %d was recorded without its last %d bytes: record with a longer "+
				"snapshot length", datagram.packet, datagram.unrecorded)
		case datagram.isOurs && len(datagram.data) > longTail:
			return nil, fmt.Errorf("packet %d is a datagram of %d bytes, and no deployed node sends more than %d: a "+
				"recording of the extended profile cannot be played", datagram.packet, len(datagram.data), longTail)
		case datagram.isOurs && len(datagram.data) == longTail && !(pads && datagram.mayBeTail):
			rest := datagram
			datagram.data, rest.data = datagram.data[:protocol.MaxDatagram], datagram.data[protocol.MaxDatagram:]
			list = append(list, datagram, rest)
		default:
			list = append(list, datagram)
		}
	}
	return list, nil
}

type player struct {
	cfg    *Config
	conn   *net.UDPConn
	result Result
	buf    [1 << 16]byte
}

func (r *player) play(ctx context.Context, list []recordedDatagram) error {
	for i, datagram := range list {
		if !datagram.isOurs {
			got, datagrams, err := r.receiveMatching(datagram, r.timeout(list, i))
			if err != nil {
				return err
			}
			if r.result.Difference = compare(r.cfg.Profile, datagram, got); r.result.Difference != nil {
				return nil
			}
			r.result.Received += datagrams
			continue
		}
		if !r.cfg.FullSpeed && i > 0 && !sleep(ctx, datagram.at.Sub(list[i-1].at)) {
			return context.Cause(ctx)
		}
		if _, err := r.conn.WriteToUDPAddrPort(datagram.data, r.cfg.PeerAddr); err != nil {
			return fmt.Errorf("packet %d: %w", datagram.packet, err)
		}
		r.result.Sent++
	}
	extra, err := r.receive(r.cfg.Linger)
	if err == nil && extra != nil {
		r.result.Difference = &Difference{Got: describe(r.cfg.Profile, extra)}
	}
	return err
}

// timeout returns how long to wait for packet i of list: the recorded delay plus Config.Timeout.
func (r *player) timeout(list []recordedDatagram, i int) time.Duration {
	if i == 0 {
		return r.cfg.Timeout
	}
	return list[i].at.Sub(list[i-1].at) + r.cfg.Timeout
}

// receiveMatching waits for the live peer's counterpart of a recorded datagram. A datagram of longTail bytes may arrive
// as two datagrams.
func (r *player) receiveMatching(d recordedDatagram, timeout time.Duration) (got []byte, datagrams int, err error) {
	got, err = r.receive(timeout)
	if err != nil || len(d.data) != longTail || len(got) != protocol.MaxDatagram || !bytes.HasPrefix(d.data, got) {
		return got, 1, err
	}
	got = bytes.Clone(got)
	rest, err := r.receive(timeout)
	return append(got, rest...), 2, err
}

// receive waits for a datagram from the peer. It returns nil after the timeout.
func (r *player) receive(timeout time.Duration) ([]byte, error) {
	if err := r.conn.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	for {
		n, from, err := r.conn.ReadFromUDPAddrPort(r.buf[:])
		if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if from.Addr().Unmap() == r.cfg.PeerAddr.Addr() {
			return r.buf[:n], nil
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// compare returns the difference between a received datagram and the recorded one, or nil if they are equal.
func compare(profile protocol.Profile, datagram recordedDatagram, got []byte) *Difference {
	if got == nil {
		return &Difference{Packet: datagram.packet, Want: describe(profile, datagram.data)}
	}
	if bytes.Equal(datagram.data, got) {
		return nil
	}
	offset := 0
	for offset < min(len(datagram.data), len(got)) && datagram.data[offset] == got[offset] {
		offset++
	}
	return &Difference{Packet: datagram.packet, Want: describe(profile, datagram.data), Got: describe(profile, got),
		Offset: offset}
}

// describe formats the header of a datagram, or its first bytes.
func describe(profile protocol.Profile, b []byte) string {
	if h, defect := profile.Parse(b); defect.OK() {
		return fmt.Sprintf("%v (%d bytes)", h, len(b))
	}
	return fmt.Sprintf("payload of %d bytes, %x…", len(b), b[:min(8, len(b))])
}
