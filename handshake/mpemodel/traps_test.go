package mpemodel

import (
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/handshake/modeltest"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Each test is named after an entry of the list of traps of deployed nodes, and shows that the model has the flaw.

func TestTrap1NewerHeaderOverwritesTheDeferredOne(t *testing.T) {
	for _, overwritten := range []bool{false, true} {
		r := newRig(t)
		r.send(0, []uint32{1})
		r.in(2, modeltest.Header(protocol.SendRequest, 2, 1, 0))
		if overwritten {
			r.in(2, modeltest.Header(protocol.Ack, 2, 1, 0))
		}
		r.in(0, modeltest.Header(protocol.ClearToSend, 0, 1, 0), modeltest.Header(protocol.Ack, 0, 1, 0))
		r.TakePackets()
		r.recv(2, 1)
		if overwritten {
			r.wantOut()
			r.wantState("WAIT4ACK")
		} else {
			r.wantOut(modeltest.Header(protocol.ClearToSend, 1, 2, 0))
			r.wantState("RECV_DATA_START")
		}
	}
}

// deferAck leaves a duplicate ACK of rank 2 deferred while rank 1 sends to rank 0.
func deferAck(t *testing.T) *rig {
	r := newRig(t)
	r.send(0, []uint32{1})
	r.in(2, modeltest.Header(protocol.Ack, 2, 1, 0))
	r.in(0, modeltest.Header(protocol.ClearToSend, 0, 1, 0))
	r.after(150 * ms)
	r.in(0, modeltest.Header(protocol.Ack, 0, 1, 0))
	r.TakePackets()
	return r
}

func TestTrap2WrongDeferredHeaderSwallowsTheSendRequest(t *testing.T) {
	r := deferAck(t)
	r.recv(2, 3)
	r.wantState("WAIT4ACK")
	r.wantWedged("wait for ACK")
	for range 3 {
		r.in(2, modeltest.Header(protocol.SendRequest, 2, 1, 0))
		r.after(1100 * ms)
	}
	r.wantOut()
	r.wantState("IDLE")
	r.wantWedged("waits for more lines")
}

// Without a SEND_REQUEST in time, the rest of the timeout of an earlier wait makes the MPE send: it waits for
// data of a program that receives.
func TestTrap2TimeoutMakesTheReceiveIntoASend(t *testing.T) {
	r := deferAck(t)
	r.recv(2, 3)
	// 225 ms for the ACK, of which 150 ms have passed.
	r.after(75*ms - 1)
	r.wantState("WAIT4ACK")
	r.after(1)
	r.wantState("SEND_DATA_RD")
	r.wantWedged("from a program that receives")
	r.in(2, modeltest.Header(protocol.SendRequest, 2, 1, 0))
	r.after(60 * 1000 * ms)
	r.wantOut()
	r.wantState("SEND_DATA_RD")
}

// A single rank cannot cause that: its header is deleted when the call ends.
func TestTrap2TakesThreeRanks(t *testing.T) {
	r := newRig(t)
	r.send(0, []uint32{1})
	r.in(0, modeltest.Header(protocol.ClearToSend, 0, 1, 0), modeltest.Header(protocol.ClearToSend, 0, 1, 0),
		modeltest.Header(protocol.Ack, 0, 1, 0))
	r.TakePackets()
	r.exchange(0, []uint32{5, 6})
	r.wantBuffer([]uint32{5, 6})
}

func TestTrap3CrossedSendRequestIsForgotten(t *testing.T) {
	r := newRig(t)
	r.send(0, []uint32{7, 8})
	r.in(0, modeltest.Header(protocol.SendRequest, 0, 1, 0), modeltest.Header(protocol.ClearToSend, 0, 1, 0),
		modeltest.Header(protocol.Ack, 0, 1, 0))
	r.wantOut(modeltest.Header(protocol.SendRequest, 1, 0, 0), modeltest.Message(1, 0, []uint32{7, 8})[0])
	r.recv(0, 1)
	r.wantOut()
	r.wantState("WAIT4REQ")
	r.wantWedged("")
	r.in(0, modeltest.Header(protocol.SendRequest, 0, 1, 0))
	r.wantOut(modeltest.Header(protocol.ClearToSend, 1, 0, 0))
}

// After DATA was sent, on the other hand, a SEND_REQUEST is deleted only by the ACK, and by retransmitted DATA.
func TestTrap3SendRequestBeforeTheAckIsForgottenToo(t *testing.T) {
	r := newRig(t)
	r.send(0, []uint32{7, 8})
	r.in(0, modeltest.Header(protocol.ClearToSend, 0, 1, 0), modeltest.Header(protocol.SendRequest, 0, 1, 0),
		modeltest.Header(protocol.Ack, 0, 1, 0))
	r.TakePackets()
	r.recv(0, 1)
	r.wantOut()
	r.wantState("WAIT4REQ")
}

// begin makes rank 1 wait for the DATA of n words from rank 0.
func begin(t *testing.T, n uint32) *rig {
	r := newRig(t)
	r.recv(0, n)
	r.in(0, modeltest.Header(protocol.SendRequest, 0, 1, 0))
	r.wantOut(modeltest.Header(protocol.ClearToSend, 1, 0, 0))
	return r
}

func TestTrap4RetransmissionAfterALostContinuationIsStoredAndAcknowledged(t *testing.T) {
	words, next := modeltest.PatternWords(0, 0, 1000), modeltest.PatternWords(1, 0, 1000)
	d := modeltest.Message(0, 1, words)
	header := modeltest.DecodeWords(d[0][:protocol.HeaderLen])
	for lost, want := range map[int][2][]uint32{
		1: {slices.Concat(words[:346], words[700:], header, words[:346]), next},
		// Words that the dequeuer did not need are the start of the next message.
		2: {slices.Concat(words[:700], header, words[:292]), slices.Concat(words[292:346], next[:946])},
	} {
		r := begin(t, 1000)
		r.in(0, slices.Delete(slices.Clone(d), lost, lost+1)...)
		r.after(100 * ms)
		r.in(0, d...)
		r.wantOut(modeltest.Header(protocol.Ack, 1, 0, 0))
		r.wantBuffer(want[0])
		r.exchange(0, next)
		r.wantBuffer(want[1])
	}
}

func TestTrap4SendRequestInMidMessageIsStored(t *testing.T) {
	words := modeltest.PatternWords(0, 0, 400)
	d := modeltest.Message(0, 1, words)
	r := begin(t, 400)
	r.in(0, d[0], modeltest.Header(protocol.SendRequest, 0, 1, 0), d[1])
	r.wantOut(modeltest.Header(protocol.Ack, 1, 0, 0))
	r.wantBuffer(slices.Concat(words[:346], modeltest.DecodeWords(modeltest.Header(protocol.SendRequest, 0, 1, 0)),
		words[346:392]))
}

func TestTrap4OtherRanksMayInterruptAMessage(t *testing.T) {
	words := modeltest.PatternWords(0, 0, 400)
	d := modeltest.Message(0, 1, words)
	r := begin(t, 400)
	r.in(0, d[0])
	r.in(2, modeltest.Header(protocol.SendRequest, 2, 1, 0))
	r.in(2, modeltest.Message(2, 1, words)...)
	r.in(0, d[1])
	r.wantOut(modeltest.Header(protocol.Ack, 1, 0, 0))
	r.wantBuffer(words)
	r.recv(2, 1)
	r.wantOut(modeltest.Header(protocol.ClearToSend, 1, 2, 0))
}

func TestTrap4OneDatagramRetransmitsSafely(t *testing.T) {
	words := modeltest.PatternWords(0, 0, 346)
	d := modeltest.Message(0, 1, words)
	r := begin(t, 346)
	r.in(0, d[0], d[0], d[0])
	r.wantOut(modeltest.Header(protocol.Ack, 1, 0, 0))
	r.wantBuffer(words)
	r.exchange(0, modeltest.PatternWords(1, 0, 346))
	r.wantBuffer(modeltest.PatternWords(1, 0, 346))
}

func TestTrap6NeverAcknowledgesTwice(t *testing.T) {
	words := []uint32{1, 2, 3}
	r := begin(t, 3)
	d := modeltest.Message(0, 1, words)[0]
	r.in(0, d)
	r.wantOut(modeltest.Header(protocol.Ack, 1, 0, 0))
	r.in(0, d)
	r.wantOut()
	// Neither when idle nor in the next call.
	r.recv(0, 3)
	r.in(0, d)
	r.wantOut()
	r.wantState("WAIT4REQ")
}
