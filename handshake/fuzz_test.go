package handshake_test

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Events of a fuzzed run. Each is one byte; the next byte is the elapsed time in quarters of a millisecond. evDatagram
// is followed by two bytes of length and the datagram.
const (
	evDatagram = iota
	evSend
	evRecv
	evCancelSend
	evCancelRecv
	evTick
	evReconnect
	evReset
	numEv
)

func fuzzConfigs(local, remote uint32) []handshake.Config {
	v09 := handshake.Config{Local: local, Remote: remote, Profile: protocol.V09,
		Timing: handshake.DefaultTiming(handshake.PeerRules{})}
	fpgaPeer := handshake.Config{Local: local, Remote: remote, Peer: handshake.FPGAPeer(remote),
		Timing: handshake.DefaultTiming(handshake.FPGAPeer(remote))}
	rto := fpgaPeer
	rto.OnPartial = handshake.RetransmitPartial
	cpuPeer := handshake.Config{Local: local, Remote: remote, Peer: handshake.CPUPeer(),
		Timing: handshake.DefaultTiming(handshake.CPUPeer())}
	stream := handshake.Config{Local: local, Remote: remote, Reliable: true,
		Timing: handshake.DefaultTiming(handshake.PeerRules{})}
	return []handshake.Config{fpgaPeer, cpuPeer, standIn(local, remote), v09, rto, stream}
}

// FuzzPair passes arbitrary events to a Pair. checker verifies that the Pair keeps its promises to the caller.
func FuzzPair(f *testing.F) {
	for _, seed := range captureSeeds(f) {
		for cfg := range len(fuzzConfigs(0, 1)) {
			f.Add(append([]byte{byte(cfg)<<1 | seed[0]}, seed[1:]...))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) == 0 {
			return
		}
		cfgs := fuzzConfigs(0, 1)
		cfg := cfgs[int(in[0]>>1)%len(cfgs)]
		if in[0]&1 == 1 {
			cfg.Local, cfg.Remote = 1, 0
		}
		cfg.MaxWords = 1 << 16
		cfg.Shape = protocol.CPUShape()
		c := &checker{t: t, cfg: cfg, pair: handshake.New(cfg)}
		for in = in[1:]; len(in) >= 2; {
			ev, dt := in[0]%numEv, in[1]
			in = in[2:]
			var data []byte
			if ev == evDatagram {
				if len(in) < 2 {
					return
				}
				n := min(int(binary.LittleEndian.Uint16(in)), len(in)-2)
				data, in = in[2:2+n], in[2+n:]
			}
			c.event(ev, time.Duration(dt)*time.Millisecond/4, data)
		}
	})
}

// checker is a caller that verifies everything that the Pair does.
type checker struct {
	t            *testing.T
	cfg          handshake.Config
	pair         *handshake.Pair
	now          time.Duration
	sends, recvs handshake.ID // the messages held by the pair, or 0
	next         handshake.ID
	recvWords    uint32
	copied       int64 // bytes copied since the message began
}

func (c *checker) event(ev byte, dt time.Duration, data []byte) {
	c.now += dt
	p := c.pair
	var acts []handshake.Action
	switch ev {
	case evDatagram:
		if c.cfg.Reliable {
			if len(data) >= protocol.HeaderLen {
				acts = p.Header(c.now, data[:protocol.HeaderLen], acts)
				data = data[protocol.HeaderLen:]
			}
			acts = p.Payload(c.now, data, acts)
			break
		}
		acts = p.Datagram(c.now, data, acts)
	case evSend, evRecv:
		c.next++
		words := uint32(c.now/time.Microsecond) % 2000
		var err error
		if ev == evSend {
			if idle := p.SendIdle(); idle != (c.sends == 0) {
				c.t.Fatalf("SendIdle is %v, but message %d is in its hands", idle, c.sends)
			}
			acts, err = p.Send(c.now, handshake.SendOp{ID: c.next, Words: words}, acts)
			if err == nil {
				c.sends = c.next
			}
		} else {
			if idle := p.RecvIdle(); idle != (c.recvs == 0) {
				c.t.Fatalf("RecvIdle is %v, but message %d is in its hands", idle, c.recvs)
			}
			acts, err = p.Recv(c.now, handshake.RecvOp{ID: c.next, Words: words, Any: words%2 == 0}, acts)
			if err == nil {
				c.recvs, c.recvWords, c.copied = c.next, words, 0
			}
		}
		if err != nil && len(acts) > 0 {
			c.t.Fatalf("%v, and %d actions", err, len(acts))
		}
	case evCancelSend:
		var ok bool
		if acts, ok = p.CancelSend(c.now, c.sends, acts); ok {
			c.sends = 0
		}
	case evCancelRecv:
		if p.CancelRecv(c.recvs) {
			c.recvs = 0
		}
	case evTick:
		acts = p.Tick(c.now, acts)
	case evReconnect:
		acts = p.Reconnected(c.now, acts)
	case evReset:
		p.Reset()
	}
	if len(acts) > 12 {
		c.t.Fatalf("one event, %d actions", len(acts))
	}
	c.check(acts)
	if at, ok := p.Deadline(); ok && at <= c.now && ev == evTick {
		c.t.Fatalf("after Tick(%v) the deadline is %v", c.now, at)
	}
	for _, w := range c.waits() {
		if w.Describe(c.now) == "" {
			c.t.Fatal("a wait without words")
		}
	}
}

func (c *checker) waits() (ws []handshake.Wait) {
	if w, ok := c.pair.SendWait(); ok {
		ws = append(ws, w)
	}
	if w, ok := c.pair.RecvWait(); ok {
		ws = append(ws, w)
	}
	return ws
}

func (c *checker) check(acts []handshake.Action) {
	for _, a := range acts {
		switch a.Kind {
		case handshake.Transmit, handshake.TransmitData:
			h := a.Header
			if h.Src != c.cfg.Local || h.Dst != c.cfg.Remote || h.Call > protocol.RecvFloat {
				c.t.Fatalf("sends %v", h)
			}
			isData := a.Kind == handshake.TransmitData
			if isData != (h.Type == protocol.Data) || !isData && h.Size != 0 {
				c.t.Fatalf("action %d sends %v", a.Kind, h)
			}
			if isData {
				if a.ID != c.sends {
					c.t.Fatalf("sends the data of message %d, but %d is in its hands", a.ID, c.sends)
				}
				c.pair.DataSent(c.now)
			}
		case handshake.Copy:
			if a.ID != c.recvs || a.Offset < 0 || a.Offset+int64(len(a.Payload)) > int64(c.recvWords)*4 {
				c.t.Fatalf("copies %d bytes to %d of message %d; %d of %d words is posted", len(a.Payload), a.Offset,
					a.ID, c.recvs, c.recvWords)
			}
			if a.Offset == 0 {
				c.copied = 0
			}
			if a.Offset != c.copied {
				c.t.Fatalf("copies to %d, but %d bytes were received", a.Offset, c.copied)
			}
			c.copied += int64(len(a.Payload))
		case handshake.RecvDone:
			if a.ID != c.recvs {
				c.t.Fatalf("message %d ended, but %d is posted", a.ID, c.recvs)
			}
			if a.Err == nil && c.copied != int64(a.Words)*4 && a.Words > 0 {
				c.t.Fatalf("%d words ended well, but %d bytes were copied", a.Words, c.copied)
			}
			if a.Err != nil && a.Err.Error() == "" {
				c.t.Fatal("an error without words")
			}
			c.recvs = 0
		case handshake.Repost:
			if a.ID != c.recvs || c.copied != 0 {
				c.t.Fatalf("message %d is to be posted again, but %d is posted, and %d bytes of it were copied", a.ID,
					c.recvs, c.copied)
			}
			c.recvs = 0
		case handshake.SendDone:
			if a.ID != c.sends {
				c.t.Fatalf("message %d ended, but %d is being sent", a.ID, c.sends)
			}
			c.sends = 0
		case handshake.Drop:
			if a.Reason == handshake.ReasonNone {
				c.t.Fatal("dropped without a reason")
			}
		case handshake.Note:
			if a.Event == 0 {
				c.t.Fatal("noted nothing")
			}
		default:
			c.t.Fatalf("unknown action %d", a.Kind)
		}
	}
}

// captureSeeds converts each capture to the events that rank 0 and rank 1 saw.
func captureSeeds(f *testing.F) [][]byte {
	f.Helper()
	files, err := filepath.Glob("../capture/testdata/captures/*.pcap")
	if err != nil || len(files) == 0 {
		f.Fatalf("no captures: %v", err)
	}
	var seeds [][]byte
	for _, name := range files {
		for me := byte(1); me <= 2; me++ {
			seeds = append(seeds, append([]byte{me - 1}, captureSeed(f, name, me)...))
		}
	}
	return seeds
}

func captureSeed(f *testing.F, name string, me byte) (seed []byte) {
	file, err := os.Open(name)
	if err != nil {
		f.Fatal(err)
	}
	defer file.Close()
	r, err := pcapgo.NewReader(file)
	if err != nil {
		f.Fatal(err)
	}
	var last time.Time
	for {
		data, info, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return seed
		}
		if err != nil {
			f.Fatal(err)
		}
		pkt := gopacket.NewPacket(data, r.LinkType(), gopacket.NoCopy)
		udp := pkt.TransportLayer().(*layers.UDP)
		src := pkt.NetworkLayer().(*layers.IPv4).SrcIP.To4()[3]
		h, defect := protocol.CloudFPGA.Parse(udp.Payload)
		var gap byte
		if !last.IsZero() {
			gap = byte(min(info.Timestamp.Sub(last)*4/time.Millisecond, 255))
		}
		last = info.Timestamp
		switch {
		case src != me:
			seed = append(seed, evDatagram, gap)
			seed = binary.LittleEndian.AppendUint16(seed, uint16(len(udp.Payload)))
			seed = append(seed, udp.Payload...)
		case defect.OK() && h.Type == protocol.SendRequest:
			seed = append(seed, evSend, gap)
		case defect.OK() && h.Type == protocol.ClearToSend:
			seed = append(seed, evRecv, gap)
		default:
			seed = append(seed, evTick, gap)
		}
	}
}
