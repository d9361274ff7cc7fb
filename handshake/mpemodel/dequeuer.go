package mpemodel

import "encoding/binary"

const (
	// dataFIFOWords and maxPendingDone are the capacities of the FIFOs between the MPE and the dequeuer.
	dataFIFOWords  = 256
	maxPendingDone = 4
)

// dequeuer passes payload to the wrapper line by line. It counts the lines of a message, but does not see where a
// message ends, so words left over from one message become the first words of the next.
type dequeuer struct {
	fifo        []word
	lengths     []uint32 // lengths of the next messages, in lines
	pendingDone int      // number of delivered messages that the MPE has not acknowledged yet

	active              bool
	wantLines, gotLines uint32
	secondLine          []byte // second line of the current word, or nil
	donePending         bool   // a delivered message still has to be counted in pendingDone
}

// hasSpace reports whether the FIFO has space for another word from the MPE.
func (d *dequeuer) hasSpace() bool { return len(d.fifo) < dataFIFOWords }

// step executes one step, and returns false if the dequeuer is blocked. A message that is complete must be counted in
// pendingDone before the next one begins.
func (d *dequeuer) step(w *wrapper) bool {
	switch {
	case d.donePending:
		if d.pendingDone >= maxPendingDone {
			return false
		}
		d.pendingDone++
		d.donePending = false
		return true
	case !d.active:
		if len(d.lengths) == 0 {
			return false
		}
		d.active, d.wantLines, d.gotLines = true, d.lengths[0], 0
		d.lengths = d.lengths[1:]
		return true
	case !w.reading():
		return false
	case d.secondLine != nil:
		line := d.secondLine
		d.secondLine = nil
		d.deliver(w, line)
		return true
	case len(d.fifo) == 0:
		return false
	}
	in := d.fifo[0]
	d.fifo = d.fifo[1:]
	if in.n > lineLen {
		d.secondLine = in.b[lineLen:]
	}
	d.deliver(w, in.b[:lineLen])
	return true
}

// deliver passes one whole line to the wrapper, even if the datagram filled only a part of it. A datagram that ends in
// the middle of a line thus shifts the following data by a zero word.
func (d *dequeuer) deliver(w *wrapper, line []byte) {
	d.gotLines++
	last := d.gotLines >= d.wantLines
	w.storeLine(binary.LittleEndian.Uint32(line), binary.LittleEndian.Uint32(line[4:]), last)
	if last {
		// The second line of the current word is lost.
		d.secondLine = nil
		d.active = false
		d.donePending = true
	}
}
