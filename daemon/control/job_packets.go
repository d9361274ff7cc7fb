package control

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/internal/query"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Profile returns the profile of those of the job's packets that do not use the extended profile.
func (j *Job) Profile() protocol.Profile {
	for i := range j.Reports {
		for _, p := range j.Reports[i].Cluster {
			if p.Profile == state.ProfileOf(protocol.V09) {
				return protocol.V09
			}
		}
	}
	return protocol.CloudFPGA
}

// JobPackets is a capture.Source of packets recorded by the job's ranks on this host, in chronological order.
type JobPackets struct {
	// OnNote is used like capture.Options.OnNote. It must be set before the first call of Next.
	OnNote func(pcapng.RankNote)

	follow bool
	from   time.Time
	ranks  map[netip.AddrPort]int // ranks that record packets, by address

	ctx      context.Context // context of the request
	incoming chan recorded
	stop     context.CancelFunc
	held     []recorded // in chronological order
	heldSize int        // size of the packets in held, in bytes
	ended    bool
	failed   atomic.Pointer[error] // why a rank's packets cannot be read
	stats    capture.Stats
}

// recorded is a packet or note from a rank.
type recorded struct {
	at   time.Time
	unit pcapng.Unit
	note pcapng.RankNote
}

// heldTime is how long followed packets are held back, so that packets from different ranks can be sorted by
// time.
const heldTime = 300 * time.Millisecond

// packetsTime is the time that the ranks of a job have to write their recorded packets.
const packetsTime = 10 * time.Second

// maxJobPackets limits the size of all held packets of a job, in bytes. recordedLen is the overhead of one
// packet.
const (
	maxJobPackets = 1 << 30
	recordedLen   = 256
)

// Packets returns the packets that the job's ranks have recorded. With Follow, it returns later packets as
// well, until ctx ends. A packet sent between two of these ranks appears once, as recorded by the sender. If no
// rank records packets, the error is an *Error.
func (j *Job) Packets(ctx context.Context, req CaptureRequest) (*JobPackets, error) {
	askAll(ctx, []*Job{j}, query.Status)
	var stop context.CancelFunc
	if req.Follow {
		ctx, stop = context.WithCancel(ctx)
	} else {
		ctx, stop = context.WithTimeoutCause(ctx, packetsTime,
			Errorf(Timeout, "a rank of job %s has not written its packets for %v: it may be stopped", j.Name,
				packetsTime))
	}
	if req.For > 0 {
		time.AfterFunc(req.For, stop)
	}
	s := &JobPackets{ctx: ctx, follow: req.Follow, ranks: map[netip.AddrPort]int{}, incoming: make(chan recorded),
		stop: stop}
	if req.Last > 0 || req.Follow {
		s.from = time.Now().Add(-req.Last)
	}
	type stream struct {
		rank int
		body io.ReadCloser
	}
	var streams []stream
	for i := range j.Reports {
		r := &j.Reports[i]
		addr, err := netip.ParseAddrPort(r.Address)
		if err != nil {
			continue // not the address of a rank
		}
		body, err := j.Stream(ctx, query.Request{Kind: query.Packets, Rank: r.Rank})
		if err != nil {
			continue // the rank records no packets
		}
		s.ranks[addr] = r.Rank
		streams = append(streams, stream{r.Rank, body})
	}
	if len(streams) == 0 {
		stop()
		return nil, Errorf(Failed, "the ranks of job %s on this host record no packets: their messages go through "+
			"shared memory, or record.memory is 0", j.Name)
	}
	var reading sync.WaitGroup
	for _, st := range streams {
		reading.Go(func() { s.read(ctx, st.rank, st.body) })
	}
	go func() {
		reading.Wait()
		close(s.incoming)
	}()
	return s, nil
}

// read reads the packets and notes of a rank until the rank exits or ctx ends. Without Follow, it stops at the
// first queue lengths, which the rank writes after its recorded packets.
func (s *JobPackets) read(ctx context.Context, rank int, body io.ReadCloser) {
	defer body.Close()
	defer context.AfterFunc(ctx, func() { body.Close() })()
	send := func(r recorded) {
		select {
		case s.incoming <- r:
		case <-ctx.Done():
		}
	}
	in := bufio.NewReader(body)
	if _, err := in.Peek(1); err != nil {
		return // the rank exited before it wrote anything
	}
	src, err := capture.Options{OnNote: func(n pcapng.RankNote) {
		_, depths := n.(*pcapng.Depths)
		switch of, at := n.Of(); {
		case depths && !s.follow:
			body.Close()
		case of == rank && (depths || !at.Before(s.from)):
			send(recorded{at: at, note: n})
		}
	}}.NewReader(in, fmt.Sprintf("rank %d", rank))
	if err != nil {
		s.unreadable(ctx, rank, err)
		return
	}
	var u pcapng.Unit
	for {
		if err := src.Next(&u); err != nil {
			// A rank may exit while it is writing a packet.
			if _, garbage := errors.AsType[*capture.FormatError](err); garbage {
				s.unreadable(ctx, rank, err)
			}
			return
		}
		if sender, known := s.ranks[u.Src]; known && sender != rank || u.Time.Before(s.from) {
			continue
		}
		u.Data, u.Comments = bytes.Clone(u.Data), slices.Clone(u.Comments)
		send(recorded{at: u.Time, unit: u})
	}
}

// unreadable records that the data from a rank is not a recording, unless this process has closed the
// connection.
func (s *JobPackets) unreadable(ctx context.Context, rank int, err error) {
	if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
		return
	}
	err = Errorf(Failed, "rank %d: its output is not a capture: %v: it may be another program that uses the "+
		"name of the job", rank, err)
	s.failed.CompareAndSwap(nil, &err)
}

// Next implements capture.Source.
func (s *JobPackets) Next(u *pcapng.Unit) error {
	for {
		r, err := s.next()
		if err != nil {
			return err
		}
		if r.note != nil {
			if s.OnNote != nil {
				s.OnNote(r.note)
			}
			continue
		}
		s.stats.Packets++
		s.stats.Units++
		s.stats.Bytes += int64(len(r.unit.Data))
		*u = r.unit
		u.Packet = s.stats.Packets
		return nil
	}
}

// next returns the oldest held packet or note as soon as no older one can arrive. It returns io.EOF at the end.
func (s *JobPackets) next() (recorded, error) {
	for {
		if s.heldSize > maxJobPackets {
			s.stop()
			return recorded{}, Errorf(Failed, "the ranks have written more than %d bytes of packets: no rank records "+
				"this much", maxJobPackets)
		}
		if len(s.held) > 0 {
			wait := time.Until(s.held[0].at.Add(heldTime))
			if s.ended || s.follow && wait <= 0 {
				oldest := s.held[0]
				s.held = s.held[1:]
				return oldest, nil
			}
		} else if s.ended && !s.follow && s.ctx.Err() != nil {
			return recorded{}, context.Cause(s.ctx)
		} else if failed := s.failed.Load(); s.ended && failed != nil {
			return recorded{}, *failed
		} else if s.ended {
			return recorded{}, io.EOF
		}
		s.take()
	}
}

// take waits until a packet or note arrives or, with Follow, until the oldest held one is due.
func (s *JobPackets) take() {
	var due <-chan time.Time
	if s.follow && len(s.held) > 0 {
		timer := time.NewTimer(time.Until(s.held[0].at.Add(heldTime)))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case r, more := <-s.incoming:
		if !more {
			s.ended, s.stats.End = true, time.Now()
			slices.SortStableFunc(s.held, byTime)
			return
		}
		if !s.follow { // they are all sorted at the end
			s.held = append(s.held, r)
			s.heldSize += len(r.unit.Data) + recordedLen
			return
		}
		at, _ := slices.BinarySearchFunc(s.held, r, func(a, b recorded) int {
			if a.at.After(b.at) {
				return 1
			}
			return -1 // insert after entries with the same time
		})
		s.held = slices.Insert(s.held, at, r)
	case <-due:
	}
}

func byTime(a, b recorded) int { return a.at.Compare(b.at) }

// Stats implements capture.Source.
func (s *JobPackets) Stats() capture.Stats { return s.stats }

// Close implements capture.Source.
func (s *JobPackets) Close() error {
	s.stop()
	return nil
}
