package replay_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/capturetest"
	"github.com/zrlmpi/zrlmpid/capture/replay"
	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/standin"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
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
		{Rank: 1, Addr: them, Kind: rankmap.Software},
	})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := udp.Listen(udp.Config{Rank: 1, Map: m, ReceiveBuffer: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	// The peer must not retransmit just because this machine is busy.
	const never = time.Hour
	once := handshake.Backoff{First: never, Retransmissions: 1}
	timing := handshake.Timing{Clear: once, Ack: once, Data: once, FragmentGap: never}
	hs := handshake.Config{Shape: shape, Timing: timing, MaxWords: 1 << 16}
	e, err := mpe.New(mpe.Config{Rank: 1, Peers: []mpe.Peer{{Handshake: hs, Transport: conn}, {}}})
	if err != nil {
		t.Fatal(err)
	}
	kernel, err := standin.New("echo", config.KernelOptions{Words: 1 << 16}, standin.Env{})
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
	return playFile(t, filepath.Join("../testdata/captures", name+".pcap"), change)
}

func playFile(t *testing.T, name string, change func(*replay.Config)) (*replay.Result, error) {
	src, err := capture.Options{AllPorts: true}.OpenFile(name)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	cfg := replay.Config{PlayedRank: 0, Peer: -1, PeerAddr: them, LocalAddr: us, Timeout: 5 * time.Second,
		Linger:    20 * time.Millisecond,
		FullSpeed: true}
	if change != nil {
		change(&cfg)
	}
	return replay.Run(t.Context(), src, cfg)
}

// record writes a recording of an echo for each length. Rank 0 fragments its messages like the CPU library, rank 1
// according to shape. The kernel coalesces up to together datagrams.
func record(t *testing.T, shape protocol.Shape, together int, words ...uint32) string {
	t.Helper()
	c := capturetest.New(capturetest.Raw)
	at := time.Unix(1700000000, 0)
	for _, n := range words {
		out := capturetest.Message{Src: 0, Dst: 1, From: us, To: them, Words: n, Shape: protocol.CPUShape(),
			MaxCoalesced: together}
		back := capturetest.Message{Src: 1, Dst: 0, From: them, To: us, Words: n, Shape: shape, MaxCoalesced: together}
		c.AddMessage(at, out).AddMessage(at.Add(time.Millisecond), back)
		at = at.Add(2 * time.Millisecond)
	}
	return write(t, c)
}

func write(t *testing.T, c *capturetest.Capture) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "recording.pcap")
	if err := os.WriteFile(name, c.Pcap(capturetest.Format{}), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestOffloaded: a replay sends and expects coalesced datagrams as separate datagrams, as on the wire.
func TestOffloaded(t *testing.T) {
	peer(t, protocol.CPUShape())
	name := record(t, protocol.CPUShape(), capturetest.MaxOffload, 1, 347, 348, 702, 1000, 22000)
	r, err := playFile(t, name, nil)
	want := 0
	for _, n := range []uint32{1, 347, 348, 702, 1000, 22000} {
		want += 3 + int(protocol.CPUShape().NumDatagrams(n))
	}
	if err != nil || r.Difference != nil || r.Sent != want || r.Received != want {
		t.Errorf("%+v, %v, want %d datagrams each way", r, err, want)
	}
}

// TestLongTail: a replay sends a datagram of 1424 bytes only for an MPE, and accepts one as one or two datagrams.
func TestLongTail(t *testing.T) {
	cpu, mpe := protocol.CPUShape(), protocol.FPGAShape(true)
	for name, c := range map[string]struct {
		shape protocol.Shape // shape of rank 1 in the recording
		live  protocol.Shape // shape of the live rank 1
		words []uint32
	}{
		"as it is":                {mpe, mpe, []uint32{347, 348, 1055, 1056}},
		"split by the shell":      {mpe, protocol.FPGAShape(false), []uint32{347, 348, 1055, 1056}},
		"of a host, joined":       {cpu, cpu, []uint32{348, 702, 1056}},
		"of an MPE, or a host":    {mpe, mpe, []uint32{348}},
		"of an MPE, split before": {mpe, protocol.FPGAShape(false), []uint32{348}},
	} {
		t.Run(name, func(t *testing.T) {
			peer(t, c.live)
			if r, err := playFile(t, record(t, c.shape, 2, c.words...), nil); err != nil || r.Difference != nil {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	for name, c := range map[string]struct {
		shape protocol.Shape
		words []uint32
		want  []int
	}{
		"an MPE's":                   {mpe, []uint32{347, 348}, []int{1424, 1424}},
		"a host's, or an MPE's":      {mpe, []uint32{348}, []int{1416, 8}},
		"a host's":                   {cpu, []uint32{347, 348}, []int{1416, 4, 1416, 8}},
		"a host's, of other lengths": {cpu, []uint32{702}, []int{1416, 1416, 8}},
	} {
		t.Run("sent: "+name, func(t *testing.T) {
			recording := capturetest.New(capturetest.Raw)
			for i, n := range c.words {
				recording.AddMessage(time.Unix(1700000000, int64(i)*1e6),
					capturetest.Message{Dst: 1, From: us, To: them, Words: n, Shape: c.shape, MaxCoalesced: 2})
			}
			sizes := receiver(t)
			r, err := playFile(t, write(t, recording), nil)
			if err != nil || r.Difference != nil {
				t.Fatalf("%+v, %v", r, err)
			}
			if sent := sizes(); !slices.Equal(sent, c.want) {
				t.Errorf("sent datagrams of %v bytes, want %v", sent, c.want)
			}
		})
	}
}

// receiver plays rank 1 and accepts datagrams of any length. The returned function stops it and returns the lengths of
// the DATA datagrams received.
func receiver(t *testing.T) func() []int {
	t.Helper()
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(them))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan []int)
	go func() {
		var sizes []int
		left := 0
		buf := make([]byte, 1<<16)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				ended <- sizes
				return
			}
			answer := protocol.Header{Src: 1, Call: protocol.RecvInt, Type: protocol.ClearToSend}
			h, defect := protocol.CloudFPGA.Parse(buf[:n])
			if !defect.OK() || h.Type == protocol.Data {
				sizes = append(sizes, n)
				if defect.OK() {
					left = int(h.Size)*protocol.WordLen + protocol.HeaderLen
				}
				if left -= n; left > 0 {
					continue
				}
				answer.Type = protocol.Ack
			}
			if _, err := conn.WriteToUDPAddrPort(protocol.CloudFPGA.Append(nil, answer), us); err != nil {
				t.Error(err)
			}
		}
	}()
	return func() []int {
		conn.Close()
		return <-ended
	}
}

// TestReceiveBuffer: the replay's socket has the same receive buffer as a rank's socket.
func TestReceiveBuffer(t *testing.T) {
	m, err := rankmap.New([]rankmap.Entry{{Rank: 0, Addr: us, Kind: rankmap.Software}})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := udp.Listen(udp.Config{Map: m})
	if err != nil {
		t.Fatal(err)
	}
	_, granted := conn.ReceiveBuffer()
	conn.Close()
	r, err := play(t, "ref_ref_pingpong_1", func(c *replay.Config) { c.Timeout = 10 * time.Millisecond })
	if err != nil || r.ReceiveBuffer != granted {
		t.Errorf("%+v, %v: a rank gets %d bytes", r, err, granted)
	}
}

// TestNotPlayable: a replay does not send packets that no deployed node sends, and does not make up bytes that were not
// recorded.
func TestNotPlayable(t *testing.T) {
	packet := protocol.AppendExtended(nil,
		&protocol.ExtHeader{Dst: 1, Type: protocol.Data, Session: 1, Number: 1, Length: 4000}, make([]byte, 4000))
	for want, file := range map[string]*capturetest.Capture{
		"packet 1 is a datagram of 4080 bytes, and no deployed node sends more than 1424": capturetest.New(capturetest.Raw).AddUDP(time.Unix(1700000000, 0), us, them, packet),
		"packet 3 was recorded without its last 1342 bytes": capturetest.New(capturetest.Raw).AddMessage(time.Unix(1700000000, 0), capturetest.Message{
			Dst: 1, From: us, To: them, Words: 22000, Shape: protocol.CPUShape(), MaxCoalesced: capturetest.MaxOffload,
		}).Truncate(28 + 74),
	} {
		if _, err := playFile(t, write(t, file), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestAsRecorded(t *testing.T) {
	for name, packets := range map[string]int{"ref_ref_pingpong_1": 12, "ref_ref_pingpong_347": 15,
		"ref_ref_pingpong_1000": 18} {
		peer := peer
		t.Run(name, func(t *testing.T) {
			peer(t, protocol.CPUShape())
			for _, full := range []bool{true, false} {
				r, err := play(t, name, func(c *replay.Config) { c.FullSpeed = full })
				if err != nil || r.Difference != nil || r.Sent != packets || r.Received != packets {
					t.Errorf("full %v: %+v, %v", full, r, err)
				}
			}
		})
	}
}

func TestFirstDifference(t *testing.T) {
	peer(t, protocol.FPGAShape(true)) // pads, unlike the recorded rank
	r, err := play(t, "ref_ref_pingpong_1", nil)
	if err != nil || r.Difference == nil || r.Difference.Packet != 7 || r.Difference.Offset != 36 {
		t.Fatalf("%+v, %v", r, err)
	}
	if s := r.Difference.String(); !strings.Contains(s, "packet 7 is DATA 1→0 SEND_INT size=1 (36 bytes) in the "+
		"recording, but DATA 1→0 SEND_INT size=1 (40 bytes) came") {
		t.Error(s)
	}
}

func TestNoAnswer(t *testing.T) {
	r, err := play(t, "ref_ref_pingpong_1", func(c *replay.Config) { c.Timeout = 10 * time.Millisecond })
	if err != nil || r.Difference == nil ||
		r.Difference.String() != "packet 2, CLEAR_TO_SEND 1→0 RECV_INT (32 bytes), did not come" {
		t.Fatalf("%+v, %v", r, err)
	}
}

func TestNothingToPlay(t *testing.T) {
	if _, err := play(t, "ref_ref_pingpong_1", func(c *replay.Config) { c.PlayedRank = 5 }); !errors.Is(err,
		replay.ErrNoPackets) {
		t.Fatal(err)
	}
	if _, err := play(t, "ref_ref_pingpong_1",
		func(c *replay.Config) { c.LocalAddr = netip.MustParseAddrPort("192.0.2.1:1") }); err == nil ||
		!strings.Contains(err.Error(), "--bind") {
		t.Fatal(err)
	}
}
