package capture_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// hosts simulates ranks 0 and 1, which run in two zrlmpids, and records their packets.
type hosts struct {
	t     *testing.T
	pairs [2]*handshake.Pair
	now   time.Duration
	units []pcapng.Unit
	// held lists packets that are not delivered yet. hold selects them.
	held []pcapng.Unit
	hold string
}

func newHosts(t *testing.T) *hosts {
	h := &hosts{t: t}
	rules := handshake.SoftwarePeer()
	for rank := range h.pairs {
		h.pairs[rank] = handshake.New(handshake.Config{
			Local: uint32(rank), Remote: uint32(1 - rank), Peer: rules, Shape: protocol.CPUShape(), MaxWords: 1 << 20,
			Timing: handshake.DefaultTiming(rules),
		})
	}
	return h
}

// perform records and delivers the packets that a rank sends, a millisecond later.
func (h *hosts) perform(rank int, acts []handshake.Action, err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
	for _, a := range acts {
		if a.Kind != handshake.Transmit && a.Kind != handshake.TransmitData {
			continue
		}
		h.now += ms
		u := packet(h.now, a.Header.Type, a.Header.Call, rank, 1-rank)
		u.Data = protocol.CloudFPGA.Append(nil, a.Header)
		u.Packet = int64(len(h.units) + 1)
		if a.Kind == handshake.TransmitData {
			u.Data = append(u.Data, make([]byte, 4*a.Header.Size)...)
		}
		h.units = append(h.units, u)
		if h.hold != "" && strings.HasPrefix(a.Header.String(), h.hold) {
			h.held = append(h.held, u)
			continue
		}
		h.deliver(1-rank, u)
	}
}

func (h *hosts) deliver(rank int, u pcapng.Unit) {
	h.t.Helper()
	h.perform(rank, h.pairs[rank].Datagram(h.now, bytes.Clone(u.Data), nil), nil)
}

func (h *hosts) send(rank int, id handshake.ID) {
	h.t.Helper()
	acts, err := h.pairs[rank].Send(h.now, handshake.SendOp{ID: id, Words: 1}, nil)
	h.perform(rank, acts, err)
}

func (h *hosts) recv(rank int, id handshake.ID) {
	h.t.Helper()
	acts, err := h.pairs[rank].Recv(h.now, handshake.RecvOp{ID: id, Words: 1}, nil)
	h.perform(rank, acts, err)
}

// TestRevocations: a packet with call BARRIER that revokes another packet is described as such, and the messages around
// it are valid.
func TestRevocations(t *testing.T) {
	for name, tt := range map[string]struct {
		play     func(h *hosts)
		packets  []string
		messages []string // complete, and verdict
	}{
		"a send is withdrawn": {func(h *hosts) {
			h.send(0, 1)
			acts, _ := h.pairs[0].CancelSend(h.now, 1, nil)
			h.perform(0, acts, nil)
			h.send(0, 2)
			h.recv(1, 3)
		}, []string{
			"SEND_REQUEST 0→1 SEND_INT, message 1",
			"SEND_REQUEST 0→1 BARRIER size=1, message 1, revokes SEND_REQUEST, number 0",
			"SEND_REQUEST 0→1 SEND_INT size=1, message 2",
			"CLEAR_TO_SEND 1→0 RECV_INT size=1, message 2",
			"DATA 0→1 SEND_INT size=1, message 2, bytes 0–3 of 4, complete",
			"ACK 1→0 RECV_INT, message 2",
		}, []string{"false withdrawn by its sender", "true ok"}},
		"a send times out": {func(h *hosts) {
			h.send(0, 1)
			h.now += 100 * ms
			acts, _ := h.pairs[0].CancelSend(h.now, 1, nil)
			h.perform(0, acts, nil)
		}, []string{
			"SEND_REQUEST 0→1 SEND_INT, message 1",
			"SEND_REQUEST 0→1 BARRIER size=1, message 1, revokes SEND_REQUEST, number 0",
		}, []string{"false withdrawn by its sender"}},
		"a late CLEAR_TO_SEND answers a send that is withdrawn": {func(h *hosts) {
			h.send(0, 1)
			h.hold = "CLEAR_TO_SEND"
			h.recv(1, 2)
			acts, _ := h.pairs[0].CancelSend(h.now, 1, nil)
			h.hold = "SEND_REQUEST 0→1 BARRIER"
			h.perform(0, acts, nil)
			late := h.held[0]
			h.held, h.hold = nil, ""
			h.deliver(0, late)
			h.send(0, 3)
		}, []string{
			"SEND_REQUEST 0→1 SEND_INT, message 1",
			"CLEAR_TO_SEND 1→0 RECV_INT, message 1",
			"SEND_REQUEST 0→1 BARRIER size=1, message 1, revokes SEND_REQUEST, number 0",
			"SEND_REQUEST 0→1 BARRIER size=1, revokes SEND_REQUEST, number 0 [stale]",
			"SEND_REQUEST 0→1 SEND_INT size=1, message 2",
		}, []string{"false withdrawn by its sender"}},
		"a CLEAR_TO_SEND is revoked": {func(h *hosts) {
			h.hold = "DATA"
			h.send(0, 1)
			h.recv(1, 2)
			acts, _ := h.pairs[1].RevokeRecv(h.now, 2, nil)
			h.hold, h.held = "CLEAR_TO_SEND 1→0 BARRIER", nil
			h.perform(1, acts, nil)
			h.hold, h.now = "", h.now+ms
			late := h.units[1] // a copy of the CLEAR_TO_SEND
			late.Packet, late.Time = int64(len(h.units)+1), h.units[len(h.units)-1].Time.Add(ms)
			h.units = append(h.units, late)
			h.deliver(0, h.held[0])
			h.recv(1, 3)
		}, []string{
			"SEND_REQUEST 0→1 SEND_INT, message 1",
			"CLEAR_TO_SEND 1→0 RECV_INT, message 1",
			"DATA 0→1 SEND_INT size=1, message 1, bytes 0–3 of 4, complete",
			"CLEAR_TO_SEND 1→0 BARRIER size=1, message 1, revokes CLEAR_TO_SEND, number 0",
			"CLEAR_TO_SEND 1→0 RECV_INT [stale]",
			"SEND_REQUEST 0→1 SEND_INT size=1, message 1",
			"CLEAR_TO_SEND 1→0 RECV_INT size=1, message 1",
			"DATA 0→1 SEND_INT size=1, message 1, bytes 0–3 of 4, complete",
			"ACK 1→0 RECV_INT, message 1",
		}, []string{"true ok"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHosts(t)
			tt.play(h)
			var lines []string
			tr := capture.NewTracker(capture.TrackerOptions{OnEvent: func(e *capture.Event) {
				_, line, _ := strings.Cut(e.Text(), ": ")
				lines = append(lines, line)
				if named := e.JSON().Revokes != ""; named != (e.Header.Call == protocol.Barrier) {
					t.Errorf("%s: as JSON it revokes %q", line, e.JSON().Revokes)
				}
			}})
			for i := range h.units {
				tr.ProcessUnit(&h.units[i])
			}
			tr.Finish()
			if !slices.Equal(lines, tt.packets) {
				t.Errorf("packets are\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(tt.packets, "\n"))
			}
			r := analyze(h.units)
			var messages []string
			for _, m := range r.Messages {
				messages = append(messages, strings.TrimSpace(map[bool]string{true: "true ",
					false: "false "}[m.Complete]+m.Verdict))
			}
			if len(messages) < len(tt.messages) || !slices.Equal(messages[:len(tt.messages)], tt.messages) {
				t.Errorf("messages are %q", messages)
			}
			for _, f := range r.Findings {
				switch {
				case f.Kind == capture.NeverCleared && name == "a send times out":
				// no receive matches the last message
				case f.Kind == capture.StillWaiting && strings.HasPrefix(name, "a late"):
				default:
					t.Errorf("%s: %s", f.Kind, f.Text)
				}
			}
		})
	}
}
