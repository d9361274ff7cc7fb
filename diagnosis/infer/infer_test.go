package infer

import (
	"slices"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// TestExplain checks which causes an observation leaves possible.
func TestExplain(t *testing.T) {
	quiet, talks := new(9.0), new(0.3)
	for name, tt := range map[string]struct {
		o    Observation
		want string
	}{
		"an FPGA has not answered": {
			Observation{Kind: state.KindFPGA, IsSender: true, State: handshake.WaitClear, LastHeard: quiet, HasWorked: true},
			"program_computes waits_elsewhere other_call packets_blocked packets_blocked process_ended restarted " +
				"fpga_dead_end",
		},
		"an FPGA has not answered, and may be in a message that has not ended": {
			Observation{Kind: state.KindFPGA, IsSender: true, State: handshake.WaitClear, LastHeard: quiet, HasWorked: true,
				Abandoned: true},
			"program_computes waits_elsewhere other_call packets_blocked packets_blocked process_ended restarted " +
				"fpga_dead_end restarted",
		},
		"an FPGA asks to send, too": {
			Observation{Kind: state.KindFPGA, IsSender: true, State: handshake.WaitClear, LastHeard: talks, HasWorked: true,
				PeerAsks:           true,
				RetransmitsRequest: true},
			"cycle restarted",
		},
		"an FPGA asks to send, too, and no message has ended yet": {
			Observation{Kind: state.KindFPGA, IsSender: true, State: handshake.WaitClear, LastHeard: talks, PeerAsks: true,
				RetransmitsRequest: true},
			"cycle restarted wrong_address",
		},
		"an FPGA asked to send, too, and is quiet": {
			Observation{Kind: state.KindFPGA, IsSender: true, State: handshake.WaitClear, LastHeard: quiet, HasWorked: true,
				PeerAsks:           true,
				RetransmitsRequest: true},
			"cycle restarted",
		},
		"a host asks to send, too, and may do something else meanwhile": {
			Observation{Kind: state.KindSoftware, IsSender: true, State: handshake.WaitClear, LastHeard: talks, HasWorked: true,
				PeerAsks: true, RetransmitsRequest: true},
			"cycle program_computes waits_elsewhere other_call packets_blocked restarted",
		},
		"an FPGA asks again for what was cleared": {
			Observation{Kind: state.KindFPGA, State: handshake.WaitData, LastHeard: talks, PeerAsks: true,
				RetransmitsRequest: true,
				HasLongDatagram:    true},
			"lost_packet packet_dropped packets_blocked wrong_address",
		},
		"an FPGA lacks the ACK of the message before": {
			Observation{Kind: state.KindFPGA, IsSender: true, State: handshake.WaitClear, LastHeard: talks, HasWorked: true,
				RetransmitsData: true},
			"packets_blocked",
		},
		"DATA of several datagrams is not acknowledged": {
			Observation{Kind: state.KindCPU, IsSender: true, State: handshake.WaitAck, LastHeard: quiet, HasWorked: true,
				HasLongDatagram: true},
			"lost_packet lost_packet packet_dropped path_mtu count_mismatch process_stopped process_ended restarted " +
				"fpga_dead_end",
		},
		"never heard": {
			Observation{Kind: state.KindSoftware, Extended: true, IsSender: true, State: handshake.Held, Silent: true},
			"process_ended packets_blocked packets_blocked process_stopped wrong_address wrong_profile",
		},
		"silent": {
			Observation{Kind: state.KindSoftware, Extended: true, State: handshake.WaitRequest, LastHeard: quiet,
				HasWorked: true,
				Silent:    true},
			"process_ended process_stopped packets_blocked packets_blocked",
		},
		"silent to packets, but not to questions": {
			Observation{Kind: state.KindSoftware, Extended: true, State: handshake.WaitRequest, LastHeard: talks,
				HasWorked: true,
				Silent:    true},
			"packets_blocked packets_blocked",
		},
		"everything is acknowledged": {
			Observation{Kind: state.KindSoftware, Extended: true, State: handshake.WaitRequest, LastHeard: quiet,
				HasWorked:    true,
				Acknowledged: true},
			"program_computes waits_elsewhere other_call packets_blocked process_stopped process_ended",
		},
		"it has answered, and acknowledged a long message's request": {
			Observation{Kind: state.KindSoftware, Extended: true, IsSender: true, State: handshake.WaitClear, LastHeard: quiet,
				HasLongDatagram: true, Connected: true, Acknowledged: true},
			"program_computes waits_elsewhere other_call packets_blocked process_stopped process_ended",
		},
		"it has answered, and does not acknowledge long packets": {
			Observation{Kind: state.KindSoftware, Extended: true, IsSender: true, State: handshake.WaitAck, LastHeard: talks,
				HasLongDatagram: true, Connected: true},
			"program_computes waits_elsewhere other_call packets_blocked packets_blocked path_mtu process_stopped " +
				"process_ended",
		},
		"its acknowledgements may be lost": {
			Observation{Kind: state.KindSoftware, Extended: true, IsSender: true, State: handshake.WaitClear, LastHeard: talks,
				Connected: true, Acknowledged: true, Retransmits: true},
			"program_computes waits_elsewhere other_call packets_blocked packets_blocked process_stopped process_ended",
		},
		"a CPU asked again for what was cleared, and is quiet": {
			Observation{Kind: state.KindCPU, State: handshake.WaitData, LastHeard: quiet, HasWorked: true, PeerAsks: true,
				RetransmitsRequest: true},
			"lost_packet packet_dropped packets_blocked",
		},
		"a part of DATA has come": {
			Observation{Kind: state.KindFPGA, State: handshake.Receiving, LastHeard: quiet, HasLongDatagram: true},
			"lost_packet process_ended restarted fpga_dead_end",
		},
		"it asks to send before it has acknowledged": {
			Observation{Kind: state.KindCPU, IsSender: true, State: handshake.WaitAck, LastHeard: talks, PeerAsks: true,
				RetransmitsRequest: true, HasLongDatagram: true},
			"lost_packet restarted fpga_dead_end",
		},
		"it asks for DATA again": {
			Observation{Kind: state.KindFPGA, IsSender: true, State: handshake.WaitAck, LastHeard: talks, PeerClears: true,
				HasLongDatagram: true},
			"lost_packet packet_dropped path_mtu count_mismatch packets_blocked fpga_dead_end",
		},
		"a host asks for DATA again, and is quiet": {
			Observation{Kind: state.KindSoftware, IsSender: true, State: handshake.WaitAck, LastHeard: quiet,
				HasWorked: true, PeerClears: true},
			"lost_packet packet_dropped packets_blocked",
		},
		"a host asks for DATA again, and its packets are not late": {
			Observation{Kind: state.KindSoftware, IsSender: true, State: handshake.WaitAck, LastHeard: quiet,
				HasWorked: true, PeerClears: true, ClearedAtOnce: true},
			"lost_packet packet_dropped",
		},
		"it receives, too": {
			Observation{Kind: state.KindCPU, State: handshake.WaitRequest, LastHeard: talks, PeerClears: true, HasWorked: true},
			"cycle packets_blocked packets_blocked fpga_dead_end",
		},
		"nothing listens": {
			Observation{Kind: state.KindSoftware, Extended: true, IsSender: true, State: handshake.Held, Silent: true,
				Refused: true},
			"process_ended packets_blocked packets_blocked wrong_address wrong_profile",
		},
		"the handshake of TLS is not answered": {
			Observation{Kind: state.KindSoftware, Extended: true, State: handshake.Held, Silent: true,
				NoHandshake: true},
			"process_ended tls_mismatch packets_blocked packets_blocked process_stopped wrong_address wrong_profile",
		},
		"nothing listens any more": {
			Observation{Kind: state.KindCPU, IsSender: true, State: handshake.WaitClear, LastHeard: quiet, HasWorked: true,
				Refused: true},
			"packets_blocked packets_blocked process_ended restarted fpga_dead_end",
		},
		"heard before a message has ended": {
			Observation{Kind: state.KindFPGA, State: handshake.WaitRequest, LastHeard: quiet},
			"program_computes waits_elsewhere other_call packets_blocked packets_blocked process_ended restarted " +
				"fpga_dead_end restarted wrong_address",
		},
		"asked too early": {
			Observation{Kind: state.KindFPGA, State: handshake.WaitRequest},
			"process_ended started_late program_computes waits_elsewhere other_call packets_blocked packets_blocked " +
				"restarted wrong_address",
		},
	} {
		tt.o.Waiter, tt.o.Peer, tt.o.WaitSeconds = 0, 1, 9
		left, _ := Explain(&tt.o)
		if got := causes(left); got != tt.want {
			t.Errorf("%s:\n%s, want\n%s", name, got, tt.want)
		}
	}
}

func causes(list []Possibility) string {
	var names []string
	for _, p := range list {
		names = append(names, string(p.Cause))
	}
	return strings.Join(names, " ")
}

// TestExplainsAll checks that every wait has a possible cause, that every excluded cause names the observation that
// contradicts it, and that the texts are valid.
func TestExplainsAll(t *testing.T) {
	states := []handshake.State{handshake.Held, handshake.WaitClear, handshake.WaitAck, handshake.WaitRequest,
		handshake.WaitData, handshake.Receiving}
	for _, kind := range []state.Kind{state.KindFPGA, state.KindCPU, state.KindSoftware} {
		for _, s := range states {
			for bits := range 1 << 8 {
				bit := func(i int) bool { return bits>>i&1 == 1 }
				o := &Observation{
					Waiter: 4, Peer: 7, WaitSeconds: 9, Kind: kind, State: s, LastHeard: new(5.0), Extended: bit(0) &&
						kind == state.KindSoftware,
					IsSender: s == handshake.WaitClear || s == handshake.WaitAck || s == handshake.Held, HasLongDatagram: bit(1),
					HasWorked: bit(2),
				}
				if bit(3) {
					o.LastHeard = nil
				}
				switch {
				case o.Extended:
					o.Silent = bit(4)
				case o.LastHeard != nil && s == handshake.WaitData:
					o.PeerAsks, o.RetransmitsRequest = bit(5), bit(5) && bit(6)
				case o.LastHeard != nil && s == handshake.WaitAck:
					o.PeerClears = bit(5)
				}
				left, excluded := Explain(o)
				if len(left) == 0 {
					t.Fatalf("%+v: nothing is left of %v", o, excluded)
				}
				for _, p := range left {
					if strings.Contains(p.Text, "%!") || p.Rank == p.Peer || !strings.Contains(p.Text, "rank") &&
						!strings.Contains(p.Text, "ranks") {
						t.Fatalf("%+v: %+v", o, p)
					}
				}
				if i := slices.IndexFunc(excluded, func(x Excluded) bool {
					return x.Contradiction == "" || strings.Contains(x.Contradiction,
						"%!")
				}); i >= 0 {
					t.Fatalf("%+v: %+v", o, excluded[i])
				}
			}
		}
	}
}
