package replay_test

import (
	"context"
	"errors"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/replay"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/rankmap"
	"github.com/zrlmpi/zrlmpid/standin"
	"github.com/zrlmpi/zrlmpid/udp"
)

var (
	us   = netip.MustParseAddrPort("127.0.81.1:27181")
	them = netip.MustParseAddrPort("127.0.81.2:27181")
)

// peer starts rank 1 with an echo kernel.
func peer(t *testing.T, shape protocol.Shape) {
	t.Helper()
	m, err := rankmap.New([]rankmap.Entry{
		{Rank: 0, Addr: us, Kind: rankmap.Software},
		{Rank: 1, Addr: them, Kind: rankmap.Software, Local: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := udp.Listen(udp.Config{Rank: 1, Map: m, ReceiveBuffer: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	hs := handshake.Config{Shape: shape, Timing: handshake.DeployedCPU(), MaxWords: 1 << 16}
	e, err := mpe.New(mpe.Config{Rank: 1, Peers: []mpe.Peer{{Handshake: hs, Transport: conn}, {}}})
	if err != nil {
		t.Fatal(err)
	}
	kernel, err := standin.New("echo", standin.Options{Words: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- kernel.Run(ctx, e) }()
	t.Cleanup(func() {
		cancel()
		<-ended
		e.Close(ctx)
	})
}

func play(t *testing.T, name string, change func(*replay.Config)) (*replay.Result, error) {
	t.Helper()
	src, err := capture.OpenFile(filepath.Join("../../testdata/captures", name+".pcap"))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	cfg := replay.Config{As: 0, Peer: -1, To: them, Bind: us, Timeout: 5 * time.Second, Linger: 20 * time.Millisecond, Full: true}
	if change != nil {
		change(&cfg)
	}
	return replay.Run(t.Context(), src, cfg)
}

func TestAsRecorded(t *testing.T) {
	for name, packets := range map[string]int{"ref_ref_pingpong_1": 12, "ref_ref_pingpong_347": 15, "ref_ref_pingpong_1000": 18} {
		peer := peer
		t.Run(name, func(t *testing.T) {
			peer(t, protocol.CPUShape())
			for _, full := range []bool{true, false} {
				steps := 0
				r, err := play(t, name, func(c *replay.Config) {
					c.Full = full
					c.Progress = func(replay.Step) { steps++ }
				})
				if err != nil || r.Difference != nil || r.Sent != packets || r.Received != packets || steps != 2*packets {
					t.Errorf("full %v: %+v, %v, %d steps", full, r, err, steps)
				}
			}
		})
	}
}

func TestFirstDifference(t *testing.T) {
	peer(t, protocol.FPGAShape(true)) // pads, which the recorded one does not
	r, err := play(t, "ref_ref_pingpong_1", nil)
	if err != nil || r.Difference == nil || r.Difference.Packet != 7 || r.Difference.Offset != 36 {
		t.Fatalf("%+v, %v", r, err)
	}
	if s := r.Difference.String(); !strings.Contains(s, "packet 7 is DATA 1→0 SEND_INT size=1 (36 bytes) in the recording, but DATA 1→0 SEND_INT size=1 (40 bytes) came") {
		t.Error(s)
	}
}

func TestNobodyAnswers(t *testing.T) {
	r, err := play(t, "ref_ref_pingpong_1", func(c *replay.Config) { c.Timeout = 10 * time.Millisecond })
	if err != nil || r.Difference == nil || r.Difference.String() != "packet 2, CLEAR_TO_SEND 1→0 RECV_INT (32 bytes), did not come" {
		t.Fatalf("%+v, %v", r, err)
	}
}

func TestNothingToPlay(t *testing.T) {
	if _, err := play(t, "ref_ref_pingpong_1", func(c *replay.Config) { c.As = 5 }); !errors.Is(err, replay.ErrNothing) {
		t.Fatal(err)
	}
	if _, err := play(t, "ref_ref_pingpong_1", func(c *replay.Config) { c.Bind = netip.MustParseAddrPort("192.0.2.1:1") }); err == nil || !strings.Contains(err.Error(), "--bind") {
		t.Fatal(err)
	}
}
