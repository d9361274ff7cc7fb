package bench

import "fmt"

// bcastRanks is the number of ranks of most collective operations.
const bcastRanks = 8

var (
	// Short operations need many iterations: during the first 30 ms of a step, the ranks connect and the system
	// distributes them over the processors.
	bcastSteps = []step{
		{4, 2000}, {16, 1000}, {64, 1000}, {256, 1000}, {1 << 10, 1000}, {4 << 10, 600}, {16 << 10, 300},
		{64 << 10, 150}, {256 << 10, 80}, {1 << 20, 40}, {4 << 20, 20},
	}
	bcastBusySteps = []step{
		{4, 150}, {16, 150}, {64, 150}, {256, 150}, {1 << 10, 150}, {4 << 10, 150}, {16 << 10, 150},
		{64 << 10, 100}, {256 << 10, 60}, {1 << 20, 30}, {4 << 20, 20},
	}
	collectiveSteps = []step{
		{4, 8000}, {64, 4000}, {1 << 10, 2000}, {4 << 10, 1000}, {16 << 10, 300},
		{64 << 10, 80}, {256 << 10, 30}, {1 << 20, 10}, {4 << 20, 5},
	}
	collectiveQuick = []step{{4, 10}, {64 << 10, 3}}
)

// collectiveWorkload returns the workload that measures an operation with the given number of ranks.
func collectiveWorkload(name, title string, op *operation, ranks, busy int) *workload {
	results := op.numReceivers(ranks)
	if busy > 0 {
		results++
	}
	return &workload{
		name: name, title: title, unit: "message", axis: "message length", bytes: true, source: "collective.c",
		args: []string{op.name, fmt.Sprint(ranks),
			fmt.Sprint(busy)}, requiredFigures: timeFigures, usesTags: true, isCollective: true,
		inProcess: true, weight: 2,
		fullSteps: collectiveSteps, quickSteps: collectiveQuick, ranks: func(step) int { return ranks },
		messages: func(s step) int { return results * (collectiveWarmup(s) + s.iterations) },
		run:      func(s *session, st step) ([]Point, error) { return collectiveStep(s, st, op, ranks, busy) },
	}
}

// broadcastWorkload returns the workload that measures a broadcast to 8 ranks with several broadcast methods.
func broadcastWorkload(name, title string, busy int, full []step) *workload {
	w := collectiveWorkload(name, title, operations[0], bcastRanks, busy)
	w.fullSteps, w.methods, w.inProcess, w.weight = full, true, false, 10
	return w
}

// collectiveWorkloads returns the workloads of all operations, with 8 ranks and with 4. A workload with 8 ranks is
// named after its operation.
func collectiveWorkloads() []*workload {
	all := []*workload{
		broadcastWorkload("bcast", "Broadcast to 8 ranks", 0, bcastSteps),
		broadcastWorkload("bcast-busy", "Broadcast to 8 ranks, one of which has 1 MiB to send", busyBytes,
			bcastBusySteps),
		collectiveWorkload("bcast-4", "Broadcast to 4 ranks", operations[0], 4, 0),
	}
	titles := map[string]string{"allreduce": "Allreduce", "alltoall": "Alltoall", "reduce": "Reduce",
		"gather": "Gather"}
	for _, op := range operations[1:] {
		all = append(all,
			collectiveWorkload(op.name, titles[op.name]+", 8 ranks", op, bcastRanks, 0),
			collectiveWorkload(op.name+"-4", titles[op.name]+", 4 ranks", op, 4, 0))
	}
	return all
}
