package integration_test

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/memnet"
)

// TestIdlePeersTakeLittle checks that a peer without traffic costs an engine only a few kilobytes.
func TestIdlePeersTakeLittle(t *testing.T) {
	for _, tt := range []struct {
		name          string
		fpgas, others int
		most          uint64 // bytes per peer
	}{
		{"cloudfpga", 1064, 0, 4 << 10},
		{"extended", 0, 1064, 6 << 10},
		{"both", 64, 1000, 10_000_000 / 1064},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bytes, goroutines := engineOf(t, tt.fpgas, tt.others)
			least, _ := engineOf(t, 1, 0)
			peers := uint64(tt.fpgas + tt.others)
			each := (bytes - least) / (peers - 1)
			t.Logf("an engine of %d peers: %d bytes, %d for each; %d goroutines", peers, bytes, each, goroutines)
			if each > tt.most {
				t.Errorf("each peer takes %d bytes, more than %d", each, tt.most)
			}
			if goroutines > 2 { // goroutines of other tests may exit meanwhile
				t.Errorf("%d goroutines came with %d peers", goroutines, peers)
			}
		})
	}
}

// engineOf creates an engine with the given peers, and returns the number of bytes of memory and of goroutines that it
// uses.
func engineOf(t *testing.T, fpgas, others int) (bytes uint64, goroutines int) {
	t.Helper()
	tr := memnet.New(1 + fpgas + others).Transport(0)
	cfg := mpe.Config{Peers: make([]mpe.Peer, 1+fpgas+others)}
	for rank := range cfg.Peers {
		cfg.Peers[rank] = hostPeer(rank, rank <= fpgas)
		cfg.Peers[rank].Transport = tr
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var before, after runtime.MemStats
	goroutines = runtime.NumGoroutine()
	runtime.ReadMemStats(&before)
	e, err := mpe.New(cfg)
	runtime.ReadMemStats(&after)
	goroutines = runtime.NumGoroutine() - goroutines
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(context.Background()); err != nil {
		t.Error(err)
	}
	return after.TotalAlloc - before.TotalAlloc, goroutines
}

// hostPeer returns a peer as seen by a host.
func hostPeer(rank int, fpga bool) mpe.Peer {
	if !fpga {
		return mpe.Peer{
			Extended: &extended.Config{Messages: 64, EagerBytes: 64 << 10, Seed: uint64(rank),
				Timing: patientExtended()},
			Kind: "software", Address: fmt.Sprintf("rank %d", rank),
		}
	}
	rules := handshake.FPGAPeer(uint32(rank))
	return mpe.Peer{
		Handshake: handshake.Config{
			Peer: rules, Shape: protocol.CPUShape(), Timing: patient(handshake.DefaultTiming(rules)),
			MaxWords: crowdWords,
		},
		Kind: "fpga", Address: fmt.Sprintf("rank %d", rank),
	}
}

// crowdWords is the maximum length of a message to an FPGA.
const crowdWords = 25_000

// patient returns timing that allows for long pauses within a message. With a thousand ranks on a few cores, a rank may
// pause longer than any network, and retransmissions may overflow its socket. Therefore no rank stops to retransmit, as
// an FPGA would, and deadlines are long.
func patient(t handshake.Timing) handshake.Timing {
	t.FragmentGap = time.Minute
	t.AckDeadline, t.DataDeadline = time.Minute, time.Minute
	for _, b := range []*handshake.Backoff{&t.Clear, &t.Ack, &t.Data} {
		if b.Interval == 0 {
			b.Interval = time.Second
		}
	}
	return t
}

// patientExtended is the counterpart of patient for peers of the extended profile.
func patientExtended() extended.Timing {
	t := extended.DefaultTiming(false)
	t.UnreachableAfter = time.Minute
	return t
}
