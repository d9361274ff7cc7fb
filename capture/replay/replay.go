// Package replay plays one side of a recording against a live peer: what the
// rank sent is sent again, and what it was sent is waited for and compared. It
// must never send anything that is not in the recording, nor to anybody but the
// peer it is given.
package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Config says what is played.
type Config struct {
	// As is the rank whose packets are sent; Peer the rank that is live, or -1
	// for the first one that As exchanges packets with.
	As, Peer int
	// To is the live peer's address.
	To netip.AddrPort
	// Bind is the local address, by which the peer knows who is speaking. If
	// it is not valid, it is the recorded one.
	Bind netip.AddrPort
	// Full sends without the recorded pauses.
	Full bool
	// Timeout is how long a packet of the peer is waited for beyond its
	// recorded time.
	Timeout time.Duration
	// Linger is how long to listen at the end for packets that the recording
	// does not have.
	Linger time.Duration
	// Profile is the dialect of the headers.
	Profile protocol.Profile
	// Progress is told of each packet, if it is not nil.
	Progress func(Step)
}

// Step is one packet of the recording that was played.
type Step struct {
	// Packet is its number in the recording.
	Packet int64
	// Sent is true for one of ours, false for one that came.
	Sent bool
	Data []byte
}

// Result is how a replay ended.
type Result struct {
	// Sent and Received count datagrams.
	Sent     int `json:"sent"`
	Received int `json:"received"`
	// Difference is the first packet that was not the recorded one, nil if
	// there is none.
	Difference *Difference `json:"difference,omitempty"`
}

// Difference is where the live peer did something else than the recorded one.
type Difference struct {
	// Packet is the number of the recorded packet, 0 for one that came after
	// the recording's end.
	Packet int64 `json:"packet"`
	// Want is what was recorded and Got what came, both in words.
	Want string `json:"want,omitempty"`
	Got  string `json:"got,omitempty"`
	// Offset is the first byte that differs, if both are datagrams.
	Offset int `json:"offset"`
}

// String says what was expected and what came.
func (d *Difference) String() string {
	switch {
	case d.Want == "":
		return fmt.Sprintf("behind the end of the recording came %s", d.Got)
	case d.Got == "":
		return fmt.Sprintf("packet %d, %s, did not come", d.Packet, d.Want)
	}
	return fmt.Sprintf("packet %d is %s in the recording, but %s came; byte %d is the first that differs", d.Packet, d.Want, d.Got, d.Offset)
}

// ErrNothing: the recording has no packets of the rank.
var ErrNothing = errors.New("the recording has no UDP packets between these ranks")

// maxDatagrams bounds what is held of a recording.
const maxDatagrams = 1 << 20

// recorded is a datagram of the recording.
type recorded struct {
	packet int64
	at     time.Time
	ours   bool
	data   []byte
}

// Run plays a recording to its end or to the first difference.
func Run(ctx context.Context, src capture.Source, cfg Config) (*Result, error) {
	list, from, err := load(src, &cfg)
	if err != nil {
		return nil, err
	}
	if !cfg.Bind.IsValid() {
		cfg.Bind = from
	}
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(cfg.Bind))
	if err != nil {
		return nil, fmt.Errorf("rank %d cannot be played from %v: %w (give another address with --bind; a peer tells ranks apart by it)", cfg.As, cfg.Bind, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	r := &run{cfg: &cfg, conn: conn}
	err = r.play(ctx, list)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return &r.result, err
}

// load reads the datagrams between the two ranks, and As's address.
func load(src capture.Source, cfg *Config) (list []recorded, from netip.AddrPort, err error) {
	var peer netip.AddrPort
	peerRank := -1
	tracker := capture.NewTracker(capture.TrackerOptions{Profile: cfg.Profile, OnEvent: func(e *capture.Event) {
		if !e.HasRanks || e.Proto != capture.UDP {
			return
		}
		other, mine, theirs := int(e.Header.Dst), e.Src, e.Dst
		ours := int(e.Header.Src) == cfg.As
		if !ours {
			if int(e.Header.Dst) != cfg.As {
				return
			}
			other, mine, theirs = int(e.Header.Src), e.Dst, e.Src
		}
		if peerRank < 0 && (cfg.Peer < 0 || other == cfg.Peer) {
			peerRank, from, peer = other, mine, theirs
		}
	}})
	var all []recorded
	var addrs [][2]netip.AddrPort
	var u capture.Unit
	for {
		err := src.Next(&u)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, from, err
		}
		tracker.Unit(&u)
		if u.Proto != capture.UDP {
			continue
		}
		if len(all) == maxDatagrams {
			return nil, from, fmt.Errorf("the recording has more than %d datagrams: cut out a part of it, for example with zrlctl decode -w", maxDatagrams)
		}
		if u.Truncated > 0 {
			return nil, from, fmt.Errorf("packet %d was recorded without its last %d bytes: record with a longer snapshot length", u.Packet, u.Truncated)
		}
		all = append(all, recorded{packet: u.Packet, at: u.Time, data: bytes.Clone(u.Data)})
		addrs = append(addrs, [2]netip.AddrPort{u.Src, u.Dst})
	}
	if peerRank < 0 {
		return nil, from, fmt.Errorf("rank %d: %w", cfg.As, ErrNothing)
	}
	for i, d := range all {
		switch addrs[i] {
		case [2]netip.AddrPort{from, peer}:
			d.ours = true
		case [2]netip.AddrPort{peer, from}:
		default:
			continue
		}
		list = append(list, d)
	}
	return list, from, nil
}

type run struct {
	cfg    *Config
	conn   *net.UDPConn
	result Result
	buf    [1 << 16]byte
}

func (r *run) play(ctx context.Context, list []recorded) error {
	for i, d := range list {
		if !d.ours {
			got, err := r.receive(r.patience(list, i))
			if err != nil {
				return err
			}
			if r.result.Difference = compare(r.cfg.Profile, d, got); r.result.Difference != nil {
				return nil
			}
			r.result.Received++
			r.tell(d, false)
			continue
		}
		if !r.cfg.Full && i > 0 && !sleep(ctx, d.at.Sub(list[i-1].at)) {
			return context.Cause(ctx)
		}
		if _, err := r.conn.WriteToUDPAddrPort(d.data, r.cfg.To); err != nil {
			return fmt.Errorf("packet %d: %w", d.packet, err)
		}
		r.result.Sent++
		r.tell(d, true)
	}
	extra, err := r.receive(r.cfg.Linger)
	if err == nil && extra != nil {
		r.result.Difference = &Difference{Got: describe(r.cfg.Profile, extra)}
	}
	return err
}

// patience is how long to wait for a packet: as long as the recorded peer took,
// and the time-out.
func (r *run) patience(list []recorded, i int) time.Duration {
	if i == 0 {
		return r.cfg.Timeout
	}
	return list[i].at.Sub(list[i-1].at) + r.cfg.Timeout
}

func (r *run) tell(d recorded, sent bool) {
	if r.cfg.Progress != nil {
		r.cfg.Progress(Step{Packet: d.packet, Sent: sent, Data: d.data})
	}
}

// receive waits for a datagram from the peer; nil if none comes.
func (r *run) receive(patience time.Duration) ([]byte, error) {
	if err := r.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
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
		if from.Addr().Unmap() == r.cfg.To.Addr() {
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

// compare returns how a datagram differs from the recorded one.
func compare(profile protocol.Profile, d recorded, got []byte) *Difference {
	if got == nil {
		return &Difference{Packet: d.packet, Want: describe(profile, d.data)}
	}
	if bytes.Equal(d.data, got) {
		return nil
	}
	offset := 0
	for offset < min(len(d.data), len(got)) && d.data[offset] == got[offset] {
		offset++
	}
	return &Difference{Packet: d.packet, Want: describe(profile, d.data), Got: describe(profile, got), Offset: offset}
}

// describe names a datagram by its header or its first bytes.
func describe(profile protocol.Profile, b []byte) string {
	if h, defect := profile.Parse(b); defect.OK() {
		return fmt.Sprintf("%v (%d bytes)", h, len(b))
	}
	return fmt.Sprintf("payload of %d bytes, %x…", len(b), b[:min(8, len(b))])
}
