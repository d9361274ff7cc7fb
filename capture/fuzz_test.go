package capture_test

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/capturetest"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// FuzzTracker tracks arbitrary units. In the input, each unit consists of one byte for the sender and transport, one
// byte for the time since the previous unit, two bytes for the length, and the data.
func FuzzTracker(f *testing.F) {
	for _, name := range []string{"ref_ref_pingpong_347", "ref_mpe_echo_1", "loss_fpga_data_lost_multi",
		"ref_ref_late_recv_stale_sr", "ring3_cpu0_fpga1_cpu2_347"} {
		var seed []byte
		var last time.Time
		for i, u := range recorded(f, name) {
			var gap byte
			if i > 0 {
				gap = byte(min(u.Time.Sub(last)/time.Millisecond, 255))
			}
			last = u.Time
			seed = append(seed, u.Src.Addr().As4()[3]&3|u.Dst.Addr().As4()[3]&3<<2, gap)
			seed = binary.LittleEndian.AppendUint16(seed, uint16(len(u.Data)))
			seed = append(seed, u.Data...)
		}
		f.Add(seed)
	}
	for _, stream := range []byte{0, 0x10} {
		talk := capturetest.NewExtSession(true).SendAck(0).SendAck(1).SendEager(0, 1, []byte("hello"), 3).SendRendezvous(1, 1,
			make([]byte, 100), 40)
		var seed []byte
		for _, p := range talk.Capture.Packets {
			packet := p.Data[14+20+20:] // after Ethernet, IP and TCP
			h, _, _ := protocol.ParseExtended(packet)
			seed = append(seed, byte(h.Src)|byte(h.Dst)<<2|stream, 1)
			seed = binary.LittleEndian.AppendUint16(seed, uint16(len(packet)))
			seed = append(seed, packet...)
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		events, units := 0, 0
		messages := map[int64]bool{}
		tracker := capture.NewTracker(capture.TrackerOptions{
			KeepSteps: 4,
			OnEvent: func(e *capture.Event) {
				events++
				if e.Text() == "" || e.IsData && (e.Offset < 0 || e.Bytes < 0 || e.Offset+e.Bytes > e.Total) {
					t.Fatalf("%+v", e)
				}
				e.JSON()
			},
			OnMessage: func(m *capture.Message) {
				if messages[m.ID] {
					t.Fatalf("message %d is reported twice", m.ID)
				}
				messages[m.ID] = true
				if m.Verdict == "" || len(m.Steps) > 4 || m.Retransmissions < 0 {
					t.Fatalf("%+v", m)
				}
			},
			OnFinding: func(f *capture.Finding) {
				if f.Kind == "" || f.Text == "" || len(f.Packets) == 0 {
					t.Fatalf("%+v", f)
				}
			},
		})
		now := time.Unix(1700000000, 0)
		for n := int64(1); len(in) >= 4; n++ {
			who, gap, length := in[0], in[1], int(binary.LittleEndian.Uint16(in[2:]))
			in = in[4:]
			length = min(length, len(in))
			now = now.Add(time.Duration(gap) * time.Millisecond)
			addr := func(b byte) netip.AddrPort {
				return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, b & 3}), 2718)
			}
			u := pcapng.Unit{Packet: n, Time: now, Proto: pcapng.UDP, Src: addr(who), Dst: addr(who >> 2),
				Data: in[:length]}
			if who&0x10 != 0 {
				u.Proto = pcapng.TCP
				u.Gap = int(who >> 5)
			}
			if who&0x20 != 0 {
				u.Truncated = int(gap)
			}
			in = in[length:]
			tracker.ProcessUnit(&u)
			if u.Proto == pcapng.UDP {
				units++
			}
		}
		tracker.Finish()
		if events < units {
			t.Fatalf("%d datagrams, %d events", units, events)
		}
	})
}
