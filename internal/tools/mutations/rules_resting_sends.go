package main

var (
	epochs      = test{"worlds with restarts", []string{"./extended", "-run", "TestEpochs$"}}
	rests       = test{"the tests of sends that rest", []string{"./mpi", "-run", "RestingSends"}}
	memoryAgain = test{"its own test", []string{"./mpe", "-run", "TestMemoryAfterRefusal$"}}
	exposed     = test{"its own test", []string{"./mpe/core", "-run", "TestExposed$"}}
)

// Rules about sends, possibly millions of them, that wait until a receive is posted.
func init() {
	mutations = append(mutations, []mutation{
		{"E12: a resting send handles the peer's answer", "extended/restingsends.go",
			"\treturn s.wake(h.Message)\n", "\treturn nil\n", []test{worlds}},
		{"E16: a cancelled resting send remains cancelled", "extended/restingsends.go",
			"\tif ref&cancelBit != 0 {\n", "\tif false {\n", []test{worlds}},
		{"E8: resting sends end with their session", "extended/session_end.go",
			"\tc.sends.endResting(&e)\n", "", []test{epochs}},
		{"resting sends: a send rests once it is announced", "mpe/core/peer_extended.go",
			"\t\tl.restSend(ref)\n\t}\n\tl.announced", "\t\t_ = ref\n\t}\n\tl.announced", []test{rests}},
		{"resting sends: a send that may rest is not advertised", "mpe/core/packets.go",
			" &&\n\t\t\t(message.request == nil || !message.request.MayRest) {", " {", []test{exposed}},
		{"resting sends: they are cancelled when their rank ends", "mpe/core/peer_extended.go",
			"\tl.cancelRests(err)\n", "", []test{rests}},
		{"resting sends: they end with the peer's session", "mpe/core/peer_extended.go",
			"\t\t\tl.endRests(act.Err)\n", "", []test{rests}},
		{"resting sends: after a receive, a refused send waits again", "mpe/core/blocked_senders.go",
			"p.refusedAt >= max(w.core.lastEndAt, 1)", "p.refusedAt != 0", []test{memoryAgain}},
		{"resting sends: no number is used twice", "mpe/core/restingsends.go",
			" || s.generation != uint32(n>>32) {", " {", []test{rests}},
		{"resting sends: a freed send keeps its record until it ends", "mpe/core/restingsends.go",
			"\t\ts.discarded = true\n", "\t\tq.remove(ref)\n", []test{rests}},
	}...)
}
