package daemon

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/handshake/mpemodel"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// echoFPGA plays rank 1, using the model of the FPGA on a real socket. Its program sends every message back.
type echoFPGA struct {
	t     *testing.T
	conn  *net.UDPConn
	model *mpemodel.Model
	words uint32 // length of the received message
	echo  bool   // the program is in its send
	// passing, if set, is called before each datagram in either direction.
	passing atomic.Pointer[func()]
}

// echoWords is the length of the buffer in the program's receive.
const echoWords = 5000

// newEchoFPGA starts an echoFPGA. If left is not empty, the program first sends left, as floats.
func newEchoFPGA(t *testing.T, c cluster, left []byte) *echoFPGA {
	t.Helper()
	f := &echoFPGA{t: t, conn: at(t, c.addr(1), c.addr(0)).conn,
		model: mpemodel.New(mpemodel.Config{Rank: 1, Peers: []int{0}})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.run(left)
	}()
	t.Cleanup(func() {
		f.conn.Close()
		<-ended
	})
	return f
}

func (f *echoFPGA) run(left []byte) {
	began := time.Now()
	b := make([]byte, 2048)
	if f.echo = true; left != nil {
		words := make([]uint32, len(left)/protocol.WordLen)
		for i := range words {
			words[i] = binary.LittleEndian.Uint32(left[i*protocol.WordLen:])
		}
		if err := f.model.Send(0, 0, words, protocol.Float); err != nil {
			f.t.Error(err)
		}
	}
	for f.program(time.Since(began)) {
		deadline := time.Time{}
		if next, ok := f.model.NextEvent(); ok {
			deadline = began.Add(next)
		}
		if f.conn.SetReadDeadline(deadline) != nil {
			return
		}
		switch n, err := f.conn.Read(b); {
		case err == nil:
			f.pass()
			if h, defect := protocol.CloudFPGA.Parse(b[:n]); defect.OK() && h.Type == protocol.Data {
				f.words = h.Size
			}
			f.model.Datagram(time.Since(began), 0, b[:n])
		case errors.Is(err, os.ErrDeadlineExceeded):
			f.model.Tick(time.Since(began))
		case errors.Is(err, net.ErrClosed):
			return
		}
	}
}

// program starts the program's next call, if none is in progress, and transmits pending packets.
func (f *echoFPGA) program(now time.Duration) bool {
	var err error
	if !f.model.Busy() {
		if f.echo = !f.echo; f.echo {
			words, overrun, _ := f.model.Result()
			if overrun || int(f.words) > len(words) {
				f.t.Errorf("the FPGA's buffer was overrun")
				return false
			}
			err = f.model.Send(now, 0, words[:f.words], protocol.Int)
		} else {
			err = f.model.Recv(now, 0, echoWords, protocol.Int)
		}
	}
	for _, p := range f.model.TakePackets() {
		f.pass()
		_, _ = f.conn.Write(p.Bytes) // a datagram that cannot be sent is lost
	}
	if err != nil {
		f.t.Error(err)
	}
	return err == nil
}

func (f *echoFPGA) pass() {
	if call := f.passing.Load(); call != nil {
		(*call)()
	}
}

// TestPingAfterInterrupted makes the caller of a ping disconnect at each datagram of a round trip. The next
// ping, which follows immediately and has a different length, must succeed.
func TestPingAfterInterrupted(t *testing.T) {
	for name, link := range map[string]string{"whole": "{}", "cut": "{max_message_words: 346}"} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			r := start(t, c.yaml("", "run: host", "peer: fpga, link: "+link))
			f := newEchoFPGA(t, c, nil)
			sizes := []int{1, 346, 347, 5000}
			pings, wrong := 0, 0
			for i, words := range sizes {
				for at, interrupted := int32(1), true; interrupted; at++ {
					interrupted = f.interrupt(r, words, at)
					next := sizes[(i+int(at))%len(sizes)]
					pings++
					if trip, err := pingOnce(within(t), r, next, 0); err != nil || !trip.Verified {
						wrong++
						t.Errorf("%d words after %d words were interrupted at datagram %d: %+v, %v", next, words, at,
							trip, err)
					}
				}
			}
			t.Logf("the next ping is wrong in %d of %d", wrong, pings)
		})
	}
}

// interrupt starts a ping whose caller disconnects at datagram number at, counted from 1. It returns false if
// the ping completes earlier.
func (f *echoFPGA) interrupt(r *running, words int, at int32) bool {
	ctx, cancel := context.WithCancel(within(f.t))
	defer cancel()
	var passed atomic.Int32
	call := func() {
		if passed.Add(1) == at {
			cancel()
		}
	}
	f.passing.Store(&call)
	_, err := pingOnce(ctx, r, words, 0)
	f.passing.Store(nil)
	if err != nil && !errors.Is(err, context.Canceled) {
		f.t.Fatal(err)
	}
	return err != nil
}

// TestPingAfterRestart plays an FPGA that is in a send to an earlier daemon. Its message must not be mistaken
// for the echo of a ping, even if both consist of the same words.
func TestPingAfterRestart(t *testing.T) {
	const words = 5
	left := make([]byte, words*protocol.WordLen)
	control.FillPayload(left, pingSeed, protocol.Int)
	for name, before := range map[string]bool{"announced before": true, "announced after our own": false} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			r := start(t, c.yaml("", "run: host", "peer: fpga"))
			peer := func() state.Peer { return r.findRank(0).Engine.Snapshot().Peers[0] }
			var trip control.Trip
			var err error
			ended := make(chan struct{})
			ping := func() {
				trip, err = pingOnce(within(t), r, words, pingSeed)
				close(ended)
			}
			if before {
				newEchoFPGA(t, c, left)
				await(t, "SEND_REQUEST of the FPGA", func() bool { return peer().Deferred != nil })
				ping()
			} else {
				go ping()
				await(t, "SEND_REQUEST of the ping", func() bool { return peer().Sending != nil })
				newEchoFPGA(t, c, left)
			}
			<-ended
			if err != nil || !trip.Verified || trip.SkippedMessages != 1 {
				t.Errorf("%+v, %v", trip, err)
			}
			if trip, err = pingOnce(within(t), r, words, pingSeed); err != nil || !trip.Verified || trip.SkippedMessages != 0 {
				t.Errorf("after it: %+v, %v", trip, err)
			}
		})
	}
}

// pingSeed is the seed for pings that have the same payload.
const pingSeed = 77

// pingOnce makes one round trip to rank 1. If seed is 0, the payload is unique.
func pingOnce(ctx context.Context, r *running, words int, seed uint64) (trip control.Trip, err error) {
	err = r.client.Ping(ctx, control.PingRequest{
		From: control.AnyRank, To: 1, Words: words, Count: 1, Datatype: "int", Timeout: "10s", Seed: seed,
	}, func(t control.Trip) error {
		trip = t
		return nil
	})
	return trip, err
}
