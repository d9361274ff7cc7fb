package diagnosis

import (
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestClearsAgain checks what follows from packets that another zrlmpid sends after DATA was sent to it: the host drops
// a retransmitted CLEAR_TO_SEND as stale.
func TestClearsAgain(t *testing.T) {
	drop := func(reason state.DropReason, ago float64) peerOption {
		return func(p *state.Peer) { p.LastDrop, p.SinceLastPacket = &state.Drop{Reason: reason, Seconds: ago}, &ago }
	}
	requests := func(n uint64) peerOption {
		return func(p *state.Peer) { p.PacketsOut, p.Sent = state.PacketCounts{protocol.SendRequest: n}, 2 }
	}
	const all = "lost_packet lost_packet packet_dropped process_stopped process_ended restarted"
	for name, tt := range map[string]struct {
		options []peerOption
		want    string
	}{
		"cleared at once, and again": {[]peerOption{requests(3), drop(state.DropStale, 5)},
			"lost_packet packet_dropped"},
		"cleared late, and again": {[]peerOption{requests(4), drop(state.DropStale, 5)},
			"lost_packet packet_dropped packets_blocked"},
		"a late copy":   {[]peerOption{requests(3), drop(state.DropStale, 8.9)}, all},
		"another error": {[]peerOption{requests(3), drop(state.DropType, 5)}, all},
		"an FPGA, whose next receive may have sent it": {[]peerOption{fpga, requests(3), drop(state.DropStale, 5)},
			"lost_packet lost_packet packet_dropped count_mismatch process_ended restarted fpga_dead_end"},
	} {
		options := append([]peerOption{sending(handshake.WaitAck, 9)}, tt.options...)
		d := Diagnose([]Source{{Status: status(2, host(0, peer(1, options...)))}}, MinWaitAge)
		var got []string
		for _, p := range d.Findings[0].Possible {
			got = append(got, string(p.Cause))
		}
		if list := strings.Join(got, " "); list != tt.want {
			t.Errorf("%s:\n%s, want\n%s", name, list, tt.want)
		}
	}
}
