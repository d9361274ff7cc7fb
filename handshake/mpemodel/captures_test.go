package mpemodel

import (
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake/modeltest"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// mpiCall is one call of the program on an FPGA.
type mpiCall struct {
	recv bool
	peer int
	// words to send, or expected in the buffer.
	words []uint32
}

// replay adds the information that is not in a capture: the ranks that are FPGAs, and the calls of their programs.
type replay struct {
	name     string
	programs map[int][]mpiCall // by FPGA rank
	split    bool
	// from is the time of the program's first call.
	from time.Duration
	// undelivered are the packets of the capture that did not reach the FPGA. unrecorded are the FPGA's packets,
	// counted from its first one, that did not reach the capture.
	undelivered, unrecorded []int
	// slack is the maximum delay of the real FPGA compared with the model, since it ran as a program among others; 5 ms
	// unless set.
	slack time.Duration
	// clock is the speed of the real FPGA's clock, which counts cycles of a program; 1 unless set.
	clock float64
	// busy: the last call has not returned when the capture ends.
	busy bool
	// unplayable is the reason why the model cannot replace the FPGA, or "".
	unplayable string
}

// echo receives each round from rank 0 and sends it to rank to.
func echo(rounds, n, to int, change func([]uint32) []uint32) map[int][]mpiCall {
	var calls []mpiCall
	for i := range rounds {
		words := modeltest.PatternWords(i, 0, n)
		calls = append(calls, mpiCall{true, 0, words}, mpiCall{false, to, change(words)})
	}
	return map[int][]mpiCall{1: calls}
}

func same(words []uint32) []uint32 { return words }

// initiator sends each round to rank 1 and receives the answer.
func initiator(rounds, n int) []mpiCall {
	var calls []mpiCall
	for i := range rounds {
		words := modeltest.PatternWords(i, 0, n)
		calls = append(calls, mpiCall{false, 1, words}, mpiCall{true, 1, plusOne(words)})
	}
	return calls
}

func oneWay(recv bool, rounds, n int) map[int][]mpiCall {
	var calls []mpiCall
	for i := range rounds {
		owner := 1
		if recv {
			owner = 0
		}
		calls = append(calls, mpiCall{recv, 0, modeltest.PatternWords(i, owner, n)})
	}
	return map[int][]mpiCall{1: calls}
}

func replays() []replay {
	corrupt := oneWay(true, 2, 1000)
	first := modeltest.PatternWords(0, 0, 1000)
	// The rest of the first transmission, then the header of the second one and the beginning of its payload, until the
	// count is reached.
	corrupt[1][0].words = slices.Concat(first[:346], first[700:],
		modeltest.DecodeWords(modeltest.Header(protocol.Data, 0, 1, 1000)), first[:346])

	lateClear := make([]uint32, 1001)
	for i := range lateClear {
		lateClear[i] = 0x9e3779b1 * uint32(i+1)
	}
	// The last datagram ends in the middle of a line.
	lateClear = slices.Concat(lateClear[:346], lateClear[700:], []uint32{0},
		modeltest.DecodeWords(modeltest.Header(protocol.Data, 0, 1, 1001)), lateClear[:345])

	pingpong := echo(3, 347, 0, plusOne)
	pingpong[0] = initiator(3, 347)

	return []replay{
		{name: "ref_mpe_echo_1", programs: echo(3, 1, 0, plusOne)},
		{name: "ref_mpe_echo_347", programs: echo(3, 347, 0, plusOne)},
		{name: "ref_mpe_echo_uoe_347", programs: echo(3, 347, 0, plusOne), split: true},
		{name: "ref_mpe_echo_1000", programs: echo(3, 1000, 0, plusOne)},
		{name: "ring3_cpu0_fpga1_cpu2_347", programs: echo(2, 347, 2, plusOne)},
		{name: "fpga_fpga_pingpong_347", programs: pingpong},
		{name: "mpe_ref_late_start", programs: oneWay(false, 2, 5)},
		// The receive is called with two SEND_REQUESTs waiting in the FIFO.
		{name: "ref_mpe_late_recv_call", programs: echo(3, 5, 0, same), from: 324 * ms},
		// No rank had opened its port when the first two were sent.
		{name: "ref_mpe_late_start", programs: echo(2, 5, 0, same), undelivered: []int{0, 1}},
		// The ACK was dropped. The program posts another receive, which discards the three retransmissions of DATA.
		{
			name: "loss_fpga_ack_lost", unrecorded: []int{1}, busy: true,
			programs: map[int][]mpiCall{1: {{true, 0, modeltest.PatternWords(0, 0, 100)},
				{true, 0, modeltest.PatternWords(1, 0, 100)}}},
		},
		// The first datagram of DATA, the one with the header, was dropped. The program that ran the MPE was stalled
		// while it waited, by 102 ms before its second SEND_REQUEST and by 145 ms before its second DATA.
		{
			name: "loss_fpga_data_lost_multi", programs: oneWay(false, 2, 1000),
			unrecorded: []int{3}, slack: 150 * ms,
		},
		// The second datagram of the first DATA was recorded, then dropped. See TestWhichDatagramWasDropped.
		{name: "loss_mid_to_fpga_corrupts", programs: corrupt, undelivered: []int{3}},
		// A copy of the FPGA's SEND_REQUEST makes rank 0 receive when it should send; the program's second receive does
		// not return.
		{name: "late_request_copy_deadlock", clock: 1.01, slack: 15 * ms, busy: true, programs: map[int][]mpiCall{1: {
			{true, 0, []uint32{0x2732dcf4}}, {false, 0, []uint32{0x2732dcf4}}, {true, 0, []uint32{0}},
		}}},
		// The second datagram of the first DATA was lost. The FPGA had not timed out when DATA came again.
		{name: "late_clear_lost_bare_to_fpga", clock: 0.8, programs: map[int][]mpiCall{1: {{true, 0, lateClear}}}},
		{name: "fpga_zero_words_padding", unplayable: "the SEND_REQUEST and the first DATA were not recorded"},
		// Captures without an FPGA.
		{name: "loss_bare_to_cpu_wrong_data"},
		{name: "ref_ref_late_recv_call"},
		{name: "ref_ref_late_recv_stale_sr"},
		{name: "ref_ref_late_start"},
		{name: "ref_ref_pingpong_1"},
		{name: "ref_ref_pingpong_346"},
		{name: "ref_ref_pingpong_347"},
		{name: "ref_ref_pingpong_1000"},
		{name: "ref_ring3_347"},
	}
}
