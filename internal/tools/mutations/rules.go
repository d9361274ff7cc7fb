package main

// mutation is a rule that is taken out of a file: old, which occurs once, becomes new. The
// tests are tried in order.
type mutation struct {
	rule, file, old, new string
	by                   []test
}

type test struct {
	name string
	args []string
}

var (
	search     = test{"the search", []string{"./handshake", "-run", "TestSearch$"}}
	rounds     = test{"rounds with copies", []string{"./handshake", "-run", "TestDuplicatesAcrossRounds$"}}
	itsOwn     = test{"a test of its own", []string{"./handshake", "-short"}}
	shared     = test{"a test of its own", []string{"./mpe/collective", "-run", "TestShared"}}
	woken      = test{"a test of its own", []string{"./transport/shm", "-run", "TestAwaitAndSleep|TestWokenByLink"}}
	duplicate  = test{"a test of its own", []string{"./mpe", "-run", "Duplicate"}}
	linger     = test{"a test of its own", []string{"./mpe", "-run", "TestLinger$"}}
	late       = test{"a test of its own", []string{"./mpe", "-run", "TestArrivedBeforeTimeOut$"}}
	searchE2   = test{"the search", []string{"./extended", "-run", "TestSearch$"}}
	simulation = test{"the simulation", []string{"./mpe", "-run", "TestSimulation$/(cloudfpga|fpga|nodes)", "-seeds", "1500"}}
	nodes      = test{"the simulation", []string{"./mpe", "-run", "TestSimulation$/nodes", "-seeds", "1000"}}
	streams    = test{"the simulation", []string{"./mpe", "-run", "TestSimulation$/cloudfpga,_silent_streams", "-seeds", "1000"}}
	oneWay     = test{"the simulation", []string{"./mpe", "-run", "TestSimulation$/extended,_one_way", "-seeds", "1000"}}
	killed     = test{"the simulation", []string{"./mpe", "-run", "TestSimulationOfKilled$", "-seeds", "4000"}}
	unread     = test{"a test of its own", []string{"./attach", "-run", "TestUnreadMessagesAreReturned$"}}
	upstream   = test{"the simulation", []string{"./mpe", "-run", "TestSimulationOfUpstreamCalls$", "-seeds", "300"}}
	paths      = test{"the simulation", []string{"./mpe", "-run", "TestSimulation$/.*MTUs", "-seeds", "300"}}
	memory     = test{"the simulation", []string{"./mpe", "-run", "TestSimulation$/.*memory", "-seeds", "300"}}
	questions  = test{"the tests of questions", []string{"./extended", "-run", "Question|ForgedReports"}}
	simulateE2 = test{"the simulation", []string{"./mpe", "-run", "TestSimulation$/(extended|collectives|restarts)", "-seeds", "300"}}
)

// deployed are the tests of rules towards deployed nodes.
var deployed = []test{search, rounds, simulation, itsOwn}

var sharedTests = []test{shared}

// mutations are rules of the handshake (P, D, T: docs/ZRLMPI_protocol.md), of the
// extended profile (E), and of the engine.
var mutations = []mutation{
	{"P1: a send waits while a receive of the pair has been cleared", "handshake/send.go",
		"\tif p.recv.active() {\n\t\tif p.cfg.Peer.OneAtATime {", "\tif false {\n\t\tif p.cfg.Peer.OneAtATime {", deployed},
	{"P3: of crossing requests, the peer's message goes first", "handshake/recv.go",
		"if s := &p.send; s.state == WaitClear {", "if s := &p.send; false {", deployed},
	{"P3: an FPGA is sent SEND_REQUEST again after its own message", "handshake/recv.go",
		"if s.requested == 0 || p.cfg.Peer.DropsRequests {", "if s.requested == 0 {", deployed},
	{"P5: a SEND_REQUEST is deferred until its receive is posted", "handshake/recv.go",
		"\tp.deferHeader(now, h)\n\treturn acts\n}\n\n// onData", "\treturn acts\n}\n\n// onData", deployed},
	{"P7: a CLEAR_TO_SEND between sends is kept for the next one", "handshake/send.go",
		"\t\tif p.clearPending {\n\t\t\tp.stale = ", "\t\tif false {\n\t\t\tp.stale = ", deployed},
	{"P10: after a PartialError, an FPGA is sent nothing more", "handshake/send.go",
		"if err.FPGA {", "if false {", deployed},
	{"P12: ERROR ends the send that waits", "handshake/pair.go",
		"case p.send.state == WaitClear || p.send.state == WaitAck:", "case false:", deployed},
	{"P13: a send cannot be cancelled once its DATA is out", "handshake/send.go",
		"s.op.ID != id || s.state == WaitAck {", "s.op.ID != id {", deployed},
	{"P14: after two SEND_REQUESTs, a CLEAR_TO_SEND does not ask for DATA again", "handshake/send.go",
		"s.doubtful = p.cfg.Peer.KeepsRequests && s.requested > 1", "s.doubtful = false", deployed},
	{"P15: the next send waits for the CLEAR_TO_SEND of a SEND_REQUEST too many", "handshake/send.go",
		"p.clearPending = s.doubtful && now-s.requestedAt > prompt", "p.clearPending = false", deployed},
	{"P16: a held send asks when nothing comes of the other message", "handshake/send.go",
		"\t\tif p.cfg.Peer.OneAtATime {\n\t\t\tp.armSend(now, p.cfg.Timing.Clear)\n\t\t}\n", "", deployed},
	{"D9: a datagram has a length that its place allows", "handshake/recv.go",
		"case !streamed && !p.lengthFits(0, total, payload):", "case false:", deployed},
	{"D12: DATA of more words than the limit is dropped", "handshake/recv.go",
		"case h.Size > p.cfg.MaxWords:", "case false:", deployed},
	{"P6: SEND_REQUEST again within 50 ms is not cleared again", "handshake/recv.go",
		"\t\tif r.early.on {\n\t\t\treturn acts\n\t\t}\n", "", deployed},
	{"P8: SEND_REQUEST of a deployed peer is the ACK that was lost", "handshake/send.go",
		"\tif !p.requestBeforeClear() {\n\t\tacts = append(acts, Action{Kind: Note, ID: s.op.ID, Event: RequestTakenAsAck",
		"\tif false {\n\t\tacts = append(acts, Action{Kind: Note, ID: s.op.ID, Event: RequestTakenAsAck", deployed},
	{"P9: DATA again is acknowledged again", "handshake/recv.go",
		"if p.cfg.Quirks.AckOnce || p.last.early.on {", "if true {", deployed},
	{"P9: but only after the peer's time-out", "handshake/recv.go",
		"if p.cfg.Quirks.AckOnce || p.last.early.on {", "if p.cfg.Quirks.AckOnce {", deployed},
	{"P11: no CLEAR_TO_SEND again while DATA of a deployed peer arrives", "handshake/recv.go",
		"if p.cfg.Peer.RetransmitsClear > 0 {", "if false {", deployed},
	{"P14: DATA goes to a deployed peer again only when it asks", "handshake/send.go",
		"return p.cfg.Peer.RetransmitsClear > 0 && !p.cfg.Reliable &&", "return false && !p.cfg.Reliable &&", deployed},
	{"P14: a CLEAR_TO_SEND too soon after the last does not ask", "handshake/send.go",
		"!s.doubtful && !early && !s.writing", "!s.doubtful && (!early || early) && !s.writing", deployed},
	{"P16: a second CLEAR_TO_SEND shows that the peer is in no send", "handshake/send.go",
		"if p.recv.state == WaitData && again {", "if p.recv.state == WaitData && again && false {", deployed},
	{"P17: an ACK shows that a SEND_REQUEST before it was a copy", "handshake/send.go",
		"\t\tif p.requestBeforeClear() {\n\t\t\t// It has received since", "\t\tif false {\n\t\t\t// It has received since", deployed},
	{"P18: times count by when a packet arrived", "handshake/pair.go",
		"\tfits := defect.OK()", "\tp.last.early.expire(now)\n\tfits := defect.OK()", deployed},
	{"P19: a retransmission moves the end of lingering on", "handshake/recv.go",
		"\tp.last.reacked++\n", "", []test{linger}},
	{"E9: what comes after close is answered by close", "extended/session.go",
		"c.arrivals.newest, c.closeDue = now, true", "c.arrivals.newest = now", []test{linger}},
	{"D11: no continuation after a gap of 50 ms", "handshake/recv.go",
		"if now-r.arrived > p.cfg.Timing.FragmentGap {", "if now < 0 {", deployed},
	{"D8: a datagram that does not fit starts the message over", "handshake/recv.go",
		"if !p.lengthFits(r.off, int64(r.size)*protocol.WordLen, b) {", "if now < 0 {", deployed},
	{"T6: the wait for ACK ends", "handshake/send.go",
		"s.deadline = in(now, p.cfg.Timing.AckDeadline)", "s.deadline = timer{}", deployed},
	{"quirk: a stand-in that sends does not clear again", "handshake/recv.go",
		"if p.cfg.Quirks.OneDeferredHeader && p.send.state == WaitAck {", "if false {", deployed},
	{"E32: a number that has arrived is a duplicate", "extended/arrivals.go",
		"case d >= 1<<31, d < a.end-a.next && a.has(number):", "case d >= 1<<31:", []test{searchE2, simulateE2}},
	{"E37: long packets that are lost one after the other are a black hole", "extended/mtu.go",
		"if s.lost++; s.lost < maxProbes {", "if s.lost++; s.lost > 0 {", []test{paths}},
	{"E37: what has become too long for the path may be fragmented", "mpe/packets.go",
		"pk.Fragment = l.datagrams != nil && act.Length > int64(l.conn.Payload())", "pk.Fragment = false", []test{paths}},
	{"E52: a message that had a short header keeps its number", "extended/short.go",
		"number, a := q.message-uint32(q.count), c.next()", "number, a := q.message, c.next()", []test{memory}},
	{"E52: what acknowledges packets with whole headers goes the general way", "extended/short.go",
		" || c.flight.outstanding() > 0 && h.Acknowledged != c.flight.base {", " {", []test{memory}},
	{"E53: a question that is not answered is asked again", "extended/question.go",
		"maxQuestions  = 3", "maxQuestions  = 1", []test{questions}},
	{"E53: a question that comes too soon is not answered", "extended/question.go",
		"if now < r.answered {", "if false {", []test{questions}},
	{"E53: a rank that answers no questions is known by its ACKs", "extended/question.go",
		"r.echoes >= olderEchoes {", "false {", []test{questions}},
	{"E53: parts of the answers to two questions do not fit together", "extended/question.go",
		"h.Tag != r.number ||", "false ||", []test{questions}},
	{"0 words of an FPGA come with a line of anything", "handshake/recv.go",
		"\tif total == 0 {\n\t\treturn n <= protocol.LineLen\n\t}\n", "", []test{nodes}},
	{"the wait for ACK ends on a stream, too", "handshake/send.go",
		"if !s.dataSent { // retrans", "if !s.dataSent && !p.cfg.Reliable { // retrans", []test{streams}},
	{"E30: what arrives late was not lost", "extended/ack.go",
		"if int32(echo-s.clock) >= 0 {", "if now := true; now {", []test{oneWay}},
	{"engine: a receive that was abandoned in mid-message keeps its message", "mpe/peer_handshake.go",
		"case act.Err == nil && !r.discards:", "case act.Err == nil && !r.discards && false:", []test{simulation}},
	{"engine: a deadline is noted", "mpe/timer.go",
		"\te.due = min(e.due, at)\n}", "\te.due = max(e.due, at)\n}", []test{simulation}},
	{"engine: time-outs wait for what has arrived", "mpe/peer.go",
		"\tif p.known != nil {", "\tif false {", []test{late}},
	{"engine: a receive whose message did not exist is posted again", "mpe/peer_handshake.go",
		"if !r.detached {\n\t\t\t\te.pairs.reposts", "if false {\n\t\t\t\te.pairs.reposts", []test{simulation, duplicate}},
	{"E51: messages of an earlier program's calls have other tags", "mpe/collective/abort.go",
		"if epoch == 0 || x.Tag", "if epoch == 0 || epoch > 0 || x.Tag", []test{killed}},
	{"E51: an agreement drops the messages of an earlier program's calls", "mpe/collective/agree.go",
		"\te.engine.Discard(first.Comm)\n", "", []test{killed}},
	{"E51: the messages of an agreement can be cancelled", "mpe/collective/step.go",
		"Sync: x.Tag == agreementTag", "Sync: false", []test{killed}},
	{"attach: a program that is gone takes the messages with it that it has matched", "attach/memory.go",
		"\tif gone {\n\t\treturn l.Abandon", "\tif false {\n\t\treturn l.Abandon", []test{killed}},
	{"attach: a program that is gone has its memory returned", "attach/session.go",
		"\ts.returnMemory(true)\n", "", []test{unread}},
	{"upstream's tree: replicators combine in the order of the cluster file", "mpe/coll/upstream_reduce.go",
		"for i, r := range t.mine[1:] {\n\t\t\t\ts.recv(r, tmp.at((i+1)*n), n)", "for i, r := range t.mine[1:] {\n\t\t\t\ts.recv(r, tmp.at((len(t.mine)-1-i)*n), n)", []test{upstream}},
	{"shared buffers: a half is written to when all have ended the call before the last", "mpe/collective/shared.go",
		"if !s.claimed && (step.Kind", "if false && (step.Kind", sharedTests},
	{"shared buffers: what a failed call has published does not count", "mpe/collective/shared.go",
		"\t\treturn at, errFailed\n", "", sharedTests},
	{"shared buffers: a rank that has made another call is an error", "mpe/collective/shared.go",
		"case state.Digest != digest && (", "case false && (", sharedTests},
	{"shared buffers: another process's slot is not the member's", "mpe/collective/shared.go",
		"if state.Epoch != s.epoch {", "if false {", sharedTests},
	{"shared buffers: nothing of later calls is remembered", "mpe/collective/shared.go",
		"at = min(state.Sequence, sequenceAfter(number))", "at = state.Sequence", sharedTests},
	{"shared buffers: a failed call waits like others before it is published", "mpe/collective/shared.go",
		"if rank := s.behind(t.number); rank >= 0 {", "if rank := -1; rank >= 0 {", sharedTests},
	{"shared buffers: a lost rank fails calls that wait for it", "mpe/collective/shared.go",
		"case lost != nil:", "case lost != nil && false:", sharedTests},
	{"shared buffers: a slot is used again when all members have ended their calls", "mpe/collective/shared.go",
		"state.Epoch == s.epoch && state.Sequence < sequenceAfter(s.posted)", "state.Epoch == s.epoch && false", sharedTests},
	{"shared buffers: a rank that frees a communicator says that it has ended its calls", "mpe/collective/shared.go",
		"if end := sequenceAfter(s.posted); len(s.queue) == 0 && ", "if end := sequenceAfter(s.posted); false && ", sharedTests},
	{"shared buffers: so does one whose call ends after that", "mpe/collective/shared.go",
		"if s.published == 0 || s.freed {", "if s.published == 0 {", sharedTests},
	{"shared buffers: a slot has another epoch in another communicator", "mpe/collective/shared.go",
		"epoch: a.epoch + uint64(a.comm)", "epoch: a.epoch", sharedTests},
	{"shared buffers: an await looks again before it waits", "transport/shm/shared_linux.go",
		"\tif c.hasPublished(slot) {\n", "\tif false {\n", []test{woken}},
	{"shared buffers: a new link wakes a peer that could not be woken before", "transport/shm/dial_linux.go",
		"\tl.peerDoorbell.wake() // ", "\t// ", []test{woken}},
}
