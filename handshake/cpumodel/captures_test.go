package cpumodel

import (
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake/modeltest"
)

// mpiCall is one call of the program on a CPU rank.
type mpiCall struct {
	recv bool
	peer int
	// words to send, or expected in the buffer.
	words []uint32
	// at is the earliest time of the call.
	at time.Duration
}

// replay adds the information that is not in a capture: the ranks that are CPUs, and the calls of their programs.
type replay struct {
	name     string
	programs map[int][]mpiCall // by CPU rank
	// undelivered are the packets of the capture that did not reach the CPU.
	undelivered []int
	// late is Config.TimeoutDelay.
	late [maxTimeouts]time.Duration
	// busy: the last call has not returned when the capture ends.
	busy bool
}

// pingpong sends each round to a rank and receives it from another one, changed by the ranks in between.
func pingpong(rounds, n, to, from int, change uint32) []mpiCall {
	var calls []mpiCall
	for i := range rounds {
		words := modeltest.PatternWords(i, 0, n)
		calls = append(calls, mpiCall{peer: to, words: words},
			mpiCall{recv: true, peer: from, words: modeltest.AddToWords(change, words)})
	}
	return calls
}

// echo receives each round, to which other ranks have added before, and sends it on.
func echo(rounds, n, from, to int, before, change uint32) []mpiCall {
	var calls []mpiCall
	for i := range rounds {
		words := modeltest.AddToWords(before, modeltest.PatternWords(i, 0, n))
		calls = append(calls, mpiCall{recv: true, peer: from, words: words},
			mpiCall{peer: to, words: modeltest.AddToWords(change, words)})
	}
	return calls
}

func oneWay(recv bool, peer, owner, rounds, n int) []mpiCall {
	var calls []mpiCall
	for i := range rounds {
		calls = append(calls, mpiCall{recv: recv, peer: peer, words: modeltest.PatternWords(i, owner, n)})
	}
	return calls
}

// from delays the first call of a program until the given time.
func from(at time.Duration, calls []mpiCall) []mpiCall {
	calls[0].at = at
	return calls
}

func late(first, second, third time.Duration) [maxTimeouts]time.Duration {
	return [maxTimeouts]time.Duration{first * ms, second * ms, third * ms}
}

func replays() []replay {
	type programs = map[int][]mpiCall
	stale := oneWay(false, 1, 0, 2, 5)
	stale[1].at = 599 * ms

	spoilt := make([]uint32, 1001)
	for i := range spoilt {
		spoilt[i] = 0x9e3779b1 * uint32(i+1)
	}
	// The second datagram was lost, and the retransmitted first datagram was overwritten by the second one after it.
	spoilt = slices.Concat(spoilt[:346], spoilt[700:], spoilt[346:700])
	after := []uint32{0x1bdcb3da, 0xba142d8b, 0x584ba73c, 0xf68320ed, 0x94ba9a9e}

	return []replay{
		{name: "ref_mpe_echo_1", programs: programs{0: pingpong(3, 1, 1, 1, 1)}},
		{name: "ref_mpe_echo_347", programs: programs{0: pingpong(3, 347, 1, 1, 1)}},
		{name: "ref_mpe_echo_uoe_347", programs: programs{0: pingpong(3, 347, 1, 1, 1)}},
		{name: "ref_mpe_echo_1000", programs: programs{0: pingpong(3, 1000, 1, 1, 1)}},
		{name: "ref_ref_pingpong_1", programs: programs{0: pingpong(3, 1, 1, 1, 0), 1: echo(3, 1, 0, 0, 0, 0)}},
		{name: "ref_ref_pingpong_346", programs: programs{0: pingpong(3, 346, 1, 1, 0), 1: echo(3, 346, 0, 0, 0, 0)}},
		{name: "ref_ref_pingpong_347", programs: programs{0: pingpong(3, 347, 1, 1, 0), 1: echo(3, 347, 0, 0, 0, 0)}},
		{name: "ref_ref_pingpong_1000",
			programs: programs{0: pingpong(3, 1000, 1, 1, 0), 1: echo(3, 1000, 0, 0, 0, 0)}},
		{name: "ref_ring3_347", programs: programs{
			0: pingpong(2, 347, 1, 2, 2), 1: echo(2, 347, 0, 2, 0, 1), 2: echo(2, 347, 1, 0, 1, 1),
		}},
		{name: "ring3_cpu0_fpga1_cpu2_347",
			programs: programs{0: pingpong(2, 347, 1, 2, 2), 2: echo(2, 347, 1, 0, 1, 1)}},
		{name: "mpe_ref_late_start", programs: programs{0: from(1228*ms, oneWay(true, 1, 1, 2, 5))},
			undelivered: []int{0, 1}},
		{name: "ref_mpe_late_recv_call", programs: programs{0: pingpong(3, 5, 1, 1, 0)}},
		{name: "ref_mpe_late_start", programs: programs{0: pingpong(2, 5, 1, 1, 0)}, late: late(1, 31, 0)},
		{name: "ref_ref_late_start", undelivered: []int{0, 1}, late: late(3, 14, 0), programs: programs{
			0: oneWay(false, 1, 0, 2, 5), 1: from(1219*ms, oneWay(true, 0, 0, 2, 5)),
		}},
		// The retransmitted SEND_REQUEST is deferred, and each later call finds the SEND_REQUEST of the previous call.
		{name: "ref_ref_late_recv_call", programs: programs{
			0: oneWay(false, 1, 0, 3, 5), 1: from(343*ms, oneWay(true, 0, 0, 3, 5)),
		}},
		{name: "ref_ref_late_recv_stale_sr", programs: programs{
			0: stale, 1: from(348*ms, oneWay(true, 0, 0, 2, 5)),
		}},
		// The ACK was dropped before it was recorded.
		{name: "loss_fpga_ack_lost", programs: programs{0: oneWay(false, 1, 0, 1, 100)}, late: late(2, 7, 236),
			busy: true},
		// The first datagram of the first DATA was dropped before it was recorded.
		{name: "loss_fpga_data_lost_multi", undelivered: []int{0, 1},
			programs: programs{0: from(1327*ms, oneWay(true, 1, 1, 2, 1000))}, late: late(2, 108, 0)},
		// The data of the FPGA was corrupted, not the CPU's.
		{name: "loss_mid_to_fpga_corrupts", programs: programs{0: oneWay(false, 1, 0, 2, 1000)}},
		// The timeout of 100 ms has not expired after 102 ms, so the message does not start over.
		{name: "loss_bare_to_cpu_wrong_data", late: late(4, 0, 0), programs: programs{1: {
			{recv: true, peer: 0, words: spoilt}, {recv: true, peer: 0, words: after},
		}}},
		// Captures without a rank on the CPU library.
		{name: "fpga_fpga_pingpong_347"},
		{name: "fpga_zero_words_padding"},
		{name: "late_clear_lost_bare_to_fpga"},
		{name: "late_request_copy_deadlock"},
	}
}
