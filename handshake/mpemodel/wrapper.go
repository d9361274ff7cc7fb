package mpemodel

import (
	"encoding/binary"
	"slices"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// call describes an MPI call that the wrapper passes to the MPE.
type call struct {
	peer  uint32
	call  protocol.Call
	count uint32 // words
}

// feedback is the MPE's report to the wrapper of the result of a call.
type feedback uint8

const (
	feedbackOK feedback = 1 + iota
	// feedbackFail makes the wrapper of a send pass its lines again, and that of a receive begin again at the start of its
	// buffer.
	feedbackFail
)

// wrapper models the MPI library in the FPGA's role during a single blocking call.
type wrapper struct {
	call     call
	posted   bool // the MPE has not taken the call yet
	active   bool
	done     bool
	feedback []feedback

	// In a send, words is the message. linesReady is set as long as the MPE has not read the lines of the message.
	words      []uint32
	linesReady bool

	// In a receive, buf is the user's buffer, and writePos is the position in it at which the next word is stored.
	buf          []uint32
	writePos     uint64
	lastLineRead bool // the last line was received, and feedback decides the result
	overrun      bool
}

func (w *wrapper) busy() bool { return w.active }

func (w *wrapper) startSend(c call, words []uint32) {
	*w = wrapper{call: c, posted: true, active: true, feedback: w.feedback,
		words: slices.Clone(words), linesReady: true}
}

func (w *wrapper) startRecv(c call) {
	*w = wrapper{call: c, posted: true, active: true, feedback: w.feedback,
		buf: make([]uint32, c.count)}
}

// reading reports whether the wrapper accepts lines.
func (w *wrapper) reading() bool { return w.active && w.call.call.IsRecv() && !w.lastLineRead }

// storeLine stores two words in the user's buffer. It trusts last, and compares only the position of the second word
// with the count.
func (w *wrapper) storeLine(lo, hi uint32, last bool) {
	w.store(w.writePos, lo)
	if w.writePos+1 < uint64(w.call.count) {
		w.store(w.writePos+1, hi)
	}
	w.writePos += 2
	w.lastLineRead = last
}

// store drops a word past the end of the buffer and sets overrun. The real wrapper writes it to the memory there.
func (w *wrapper) store(at uint64, v uint32) {
	if at >= uint64(len(w.buf)) {
		w.overrun = true
		return
	}
	w.buf[at] = v
}

// step handles the MPE's feedback, but not while the wrapper is reading lines. It reports whether it handled any.
func (w *wrapper) step() bool {
	if !w.active || len(w.feedback) == 0 || w.reading() {
		return false
	}
	f := w.feedback[0]
	w.feedback = w.feedback[1:]
	switch {
	case f == feedbackOK:
		w.active, w.done = false, true
	case w.call.call.IsSend():
		w.linesReady = true
	default:
		w.writePos, w.lastLineRead = 0, false
	}
	return true
}

// appendLines appends the message to b in whole lines, padding the last one with zeros. It appends one line for a
// message of 0 words (trap 8); the real wrapper fills that line with the memory after the user's buffer.
func (w *wrapper) appendLines(b []byte) []byte {
	for _, v := range w.words {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	if len(w.words)%2 != 0 {
		b = binary.LittleEndian.AppendUint32(b, 0)
	}
	if len(w.words) == 0 {
		b = append(b, make([]byte, lineLen)...)
	}
	return b
}
