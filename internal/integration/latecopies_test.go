package integration_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/udp"
)

// TestLateCopies runs a stand-in that sends to a host, or echoes, while the relay of zrlctl impair delivers every tenth
// DATA a second time, up to 8 ms late. It checks that no copy is received in place of the next message without a
// report. ZRLMPI_COPIED_MESSAGES sets the number of messages per case.
func TestLateCopies(t *testing.T) {
	messages, err := strconv.Atoi(cmp.Or(os.Getenv("ZRLMPI_COPIED_MESSAGES"), "300"))
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range []int{1, 5, 346, 347, 701, 1000} {
		for _, echo := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d words/echo %v", words, echo), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute+time.Duration(messages)*20*time.Millisecond)
				defer cancel()
				s := newCopied(t)
				ended := make(chan error, 1)
				go func() { ended <- s.standIn(ctx, words, messages, echo) }()
				wrong, silent, err := s.host(ctx, words, messages, echo)
				if err != nil {
					t.Errorf("host: %v", err)
				}
				if silent > 0 {
					t.Errorf("%d of %d wrong messages were received without a report", silent, wrong)
				}
				cancel()
				<-ended
				c := s.relay.Report().Total
				if c.Duplicated == 0 {
					t.Error("nothing was duplicated")
				}
				t.Logf("%d messages, %d copies, %d wrong, %d of them not reported; events %v", messages, c.Duplicated,
					wrong, silent, s.events())
			})
		}
	}
}

// copied is a host and a stand-in, connected by the relay.
type copied struct {
	integrity
}

func newCopied(t *testing.T) *copied {
	t.Helper()
	entries := make([]config.Rank, 2)
	for rank := range entries {
		addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 83, byte(rank + 1)}), 27180)
		entries[rank] = config.Rank{Rank: rank, Address: config.Address{AddrPort: addr}, Run: config.RunHost}
	}
	s := &copied{integrity{t: t}}
	s.relay, s.maps = relayed(t, config.New(entries...), "udp", "packet DATA duplicate 10% late 0us~8ms")
	rules := handshake.FPGAPeer(1)
	ends := []handshake.Config{
		{Peer: rules, Shape: protocol.CPUShape(), Timing: handshake.DefaultTiming(rules), MaxWords: 1 << 20},
		{
			Shape: protocol.FPGAShape(true), Timing: handshake.DeployedFPGA(1), MaxWords: 1 << 20,
			Quirks: handshake.Quirks{OneDeferredHeader: true, AckOnce: true, IgnoreDestination: true, CarryOver: true},
		},
	}
	for rank, m := range s.maps {
		tr, err := udp.Listen(udp.Config{Rank: rank, Map: m})
		if err != nil {
			t.Fatal(err)
		}
		peers := make([]mpe.Peer, len(ends))
		for other := range peers {
			peers[other] = mpe.Peer{Transport: tr, Handshake: ends[rank]}
		}
		e, err := mpe.New(mpe.Config{Rank: rank, Peers: peers, Oversubscribed: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close(ended()) })
		s.engines = append(s.engines, e)
	}
	return s
}

// copiedMessage returns a message that differs from all others.
func copiedMessage(number, words int) []byte {
	b := make([]byte, words*protocol.WordLen)
	for i := range words {
		binary.LittleEndian.PutUint32(b[i*protocol.WordLen:], uint32(number*1_000_003+i*7919))
	}
	return b
}

func (s *copied) standIn(ctx context.Context, words, messages int, echo bool) error {
	buf := make([]byte, words*protocol.WordLen)
	for i := range messages {
		if echo {
			if _, err := s.engines[1].Recv(ctx, 0, buf, mpe.Options{}); err != nil {
				return err
			}
		}
		if _, err := s.engines[1].Send(ctx, 0, copiedMessage(i, words), mpe.Options{}); err != nil {
			return err
		}
	}
	return nil
}

// host receives messages. wrong counts the received messages that are not the next one. silent counts the wrong
// messages that went unreported from the message before until the message after.
func (s *copied) host(ctx context.Context, words, messages int, echo bool) (wrong, silent int, err error) {
	buf := make([]byte, words*protocol.WordLen)
	next, pending := 0, false // pending: a wrong message has not been reported yet
	before := uint64(0)
	for range messages - messages/10 { // copies take the place of messages
		if echo {
			if _, err := s.engines[0].Send(ctx, 1, copiedMessage(next, words), mpe.Options{}); err != nil {
				return wrong, silent, err
			}
		}
		if _, err := s.engines[0].Recv(ctx, 1, buf, mpe.Options{}); err != nil {
			return wrong, silent, err
		}
		after := s.reports()
		if pending && after == before {
			silent++
		}
		pending = false
		ahead := 0 // the skipped messages were lost to copies
		for ahead < 5 && !bytes.Equal(buf, copiedMessage(next+ahead, words)) {
			ahead++
		}
		if ahead < 5 {
			next += ahead + 1
		} else {
			wrong++
			pending = after == before
		}
		if !pending {
			before = after
		}
	}
	return wrong, silent, nil
}

func (s *copied) events() state.EventCounts { return s.engines[0].Snapshot().Peers[0].Events }

func (s *copied) reports() uint64 {
	e := s.events()
	return e[state.EventDeliveredDuplicate] + e[state.EventSecondData] + e[state.EventEarlyData] +
		e[state.EventRepeatedContent]
}
