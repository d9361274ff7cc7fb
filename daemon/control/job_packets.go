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

// Profile returns the protocol profile of those packets of the job that do not use the extended profile.
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

// JobPackets is a capture.Source of the packets recorded by the job's ranks on this host, in chronological order.
type JobPackets struct {
	// OnNote is called like capture.Options.OnNote. It must be set before the first call of Next.
	OnNote func(pcapng.RankNote)

	follow bool
	from   time.Time
	ranks  map[netip.AddrPort]int // ranks that record packets, by address

	ctx           context.Context // context of the request
	incoming      chan jobRecord
	stop          context.CancelFunc
	buffered      []jobRecord // in chronological order
	bufferedBytes int         // size of the packets in buffered
	ended         bool
	readErr       atomic.Pointer[error] // why a rank's packets cannot be read
	stats         capture.Stats
}

// jobRecord is a packet or note from a rank.
type jobRecord struct {
	at   time.Time
	unit pcapng.Unit
	note pcapng.RankNote
}

// reorderDelay is the time for which followed packets are buffered, so that packets from different ranks can be sorted
// by time.
const reorderDelay = 300 * time.Millisecond

// packetsTimeout is the time limit for the ranks of a job to write their recorded packets.
const packetsTimeout = 10 * time.Second

// maxJobPackets is the maximum size of all buffered packets of a job, in bytes. recordedLen is the overhead of one
// packet.
const (
	maxJobPackets = 1 << 30
	recordedLen   = 256
)

// Packets returns the packets recorded by the job's ranks. With Follow, it also returns later packets, until ctx is
// done. A packet sent between two of these ranks appears once, as recorded by the sender. If no rank records packets,
// the error is an *Error.
func (j *Job) Packets(ctx context.Context, req CaptureRequest) (*JobPackets, error) {
	askAll(ctx, []*Job{j}, query.Status)
	var stop context.CancelFunc
	if req.Follow {
		ctx, stop = context.WithCancel(ctx)
	} else {
		ctx, stop = context.WithTimeoutCause(ctx, packetsTimeout,
			Errorf(Timeout, "a rank of job %s has not written its packets for %v: it may be stopped", j.Name,
				packetsTimeout))
	}
	if req.Duration > 0 {
		time.AfterFunc(req.Duration, stop)
	}
	packets := &JobPackets{ctx: ctx, follow: req.Follow, ranks: map[netip.AddrPort]int{}, incoming: make(chan jobRecord),
		stop: stop}
	if req.MaxAge > 0 || req.Follow {
		packets.from = time.Now().Add(-req.MaxAge)
	}
	type stream struct {
		rank int
		body io.ReadCloser
	}
	var streams []stream
	for i := range j.Reports {
		report := &j.Reports[i]
		addr, err := netip.ParseAddrPort(report.Address)
		if err != nil {
			continue // not the address of a rank
		}
		body, err := j.Stream(ctx, query.Request{Kind: query.Packets, Rank: report.Rank})
		if err != nil {
			continue // the rank records no packets
		}
		packets.ranks[addr] = report.Rank
		streams = append(streams, stream{report.Rank, body})
	}
	if len(streams) == 0 {
		stop()
		return nil, Errorf(Failed, "the ranks of job %s on this host record no packets: their messages go through "+
			"shared memory, or record.memory is 0", j.Name)
	}
	var reading sync.WaitGroup
	for _, st := range streams {
		reading.Go(func() { packets.read(ctx, st.rank, st.body) })
	}
	go func() {
		reading.Wait()
		close(packets.incoming)
	}()
	return packets, nil
}

// read reads the packets and notes of a rank until the rank exits or ctx is done. Without Follow, it stops at the first
// queue lengths, which the rank writes after its recorded packets.
func (s *JobPackets) read(ctx context.Context, rank int, body io.ReadCloser) {
	defer body.Close()
	defer context.AfterFunc(ctx, func() { body.Close() })()
	send := func(r jobRecord) {
		select {
		case s.incoming <- r:
		case <-ctx.Done():
		}
	}
	in := bufio.NewReader(body)
	if _, err := in.Peek(1); err != nil {
		return // the rank exited before it wrote anything
	}
	src, err := capture.Options{OnNote: func(note pcapng.RankNote) {
		_, depths := note.(*pcapng.QueueDepths)
		switch of, at := note.RankAndTime(); {
		case depths && !s.follow:
			body.Close()
		case of == rank && (depths || !at.Before(s.from)):
			send(jobRecord{at: at, note: note})
		}
	}}.NewReader(in, fmt.Sprintf("rank %d", rank))
	if err != nil {
		s.noteUnreadable(ctx, rank, err)
		return
	}
	var unit pcapng.Unit
	for {
		if err := src.Next(&unit); err != nil {
			// A rank may exit while it is writing a packet.
			if _, garbage := errors.AsType[*capture.FormatError](err); garbage {
				s.noteUnreadable(ctx, rank, err)
			}
			return
		}
		if sender, known := s.ranks[unit.Src]; known && sender != rank || unit.Time.Before(s.from) {
			continue
		}
		unit.Data, unit.Comments = bytes.Clone(unit.Data), slices.Clone(unit.Comments)
		send(jobRecord{at: unit.Time, unit: unit})
	}
}

// noteUnreadable records that a rank's data is not a recording, unless this process has closed the connection.
func (s *JobPackets) noteUnreadable(ctx context.Context, rank int, err error) {
	if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
		return
	}
	err = Errorf(Failed, "rank %d: its output is not a capture: %v: it may be another program that uses the "+
		"name of the job", rank, err)
	s.readErr.CompareAndSwap(nil, &err)
}

// Next implements capture.Source.
func (s *JobPackets) Next(unit *pcapng.Unit) error {
	for {
		record, err := s.nextInOrder()
		if err != nil {
			return err
		}
		if record.note != nil {
			if s.OnNote != nil {
				s.OnNote(record.note)
			}
			continue
		}
		s.stats.Packets++
		s.stats.Units++
		s.stats.Bytes += int64(len(record.unit.Data))
		*unit = record.unit
		unit.Packet = s.stats.Packets
		return nil
	}
}

// nextInOrder returns the oldest buffered packet or note as soon as no older one can arrive. It returns io.EOF when
// none is left.
func (s *JobPackets) nextInOrder() (jobRecord, error) {
	for {
		if s.bufferedBytes > maxJobPackets {
			s.stop()
			return jobRecord{}, Errorf(Failed, "the ranks have written more than %d bytes of packets: no rank records "+
				"this much", maxJobPackets)
		}
		if len(s.buffered) > 0 {
			wait := time.Until(s.buffered[0].at.Add(reorderDelay))
			if s.ended || s.follow && wait <= 0 {
				oldest := s.buffered[0]
				s.buffered = s.buffered[1:]
				return oldest, nil
			}
		} else if s.ended && !s.follow && s.ctx.Err() != nil {
			return jobRecord{}, context.Cause(s.ctx)
		} else if failed := s.readErr.Load(); s.ended && failed != nil {
			return jobRecord{}, *failed
		} else if s.ended {
			return jobRecord{}, io.EOF
		}
		s.receive()
	}
}

// receive waits for a packet or note. With Follow, it stops waiting when the oldest buffered one is due.
func (s *JobPackets) receive() {
	var due <-chan time.Time
	if s.follow && len(s.buffered) > 0 {
		timer := time.NewTimer(time.Until(s.buffered[0].at.Add(reorderDelay)))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case record, more := <-s.incoming:
		if !more {
			s.ended, s.stats.End = true, time.Now()
			slices.SortStableFunc(s.buffered, byTime)
			return
		}
		if !s.follow { // receive sorts all of them at the end
			s.buffered = append(s.buffered, record)
			s.bufferedBytes += len(record.unit.Data) + recordedLen
			return
		}
		at, _ := slices.BinarySearchFunc(s.buffered, record, func(a, b jobRecord) int {
			if a.at.After(b.at) {
				return 1
			}
			return -1 // insert after entries with the same time
		})
		s.buffered = slices.Insert(s.buffered, at, record)
	case <-due:
	}
}

func byTime(a, b jobRecord) int { return a.at.Compare(b.at) }

// Stats implements capture.Source.
func (s *JobPackets) Stats() capture.Stats { return s.stats }

// Close implements capture.Source.
func (s *JobPackets) Close() error {
	s.stop()
	return nil
}
