package mpemodel

import "encoding/binary"

const (
	// dataFIFOWords and maxDones are the depths of the FIFOs between the MPE and the dequeuer.
	dataFIFOWords = 256
	maxDones      = 4
)

// dequeuer passes payload to the wrapper line by line. It knows how many lines a message has, but not where a message
// ends, so words left over from one message become the first words of the next.
type dequeuer struct {
	fifo    []word
	lengths []uint32 // lengths of the next messages, in lines
	dones   int      // number of delivered messages that the MPE has not acknowledged yet

	active    bool
	want, got uint32
	second    []byte // second line of the current word, or nil
	full      bool   // a message was delivered, and dones must be incremented when there is space
}

// room reports whether the MPE can write another word.
func (d *dequeuer) room() bool { return len(d.fifo) < dataFIFOWords }

func (d *dequeuer) step(w *wrapper) bool {
	switch {
	case d.full:
		if d.dones >= maxDones {
			return false
		}
		d.dones++
		d.full = false
		return true
	case !d.active:
		if len(d.lengths) == 0 {
			return false
		}
		d.active, d.want, d.got = true, d.lengths[0], 0
		d.lengths = d.lengths[1:]
		return true
	case !w.reading():
		return false
	case d.second != nil:
		line := d.second
		d.second = nil
		d.deliver(w, line)
		return true
	case len(d.fifo) == 0:
		return false
	}
	in := d.fifo[0]
	d.fifo = d.fifo[1:]
	if in.n > lineLen {
		d.second = in.b[lineLen:]
	}
	d.deliver(w, in.b[:lineLen])
	return true
}

// deliver passes one whole line to the wrapper, even if the datagram filled only a part of it. A datagram that ends
// within a line thus shifts the following data by a zero word.
func (d *dequeuer) deliver(w *wrapper, line []byte) {
	d.got++
	last := d.got >= d.want
	w.line(binary.LittleEndian.Uint32(line), binary.LittleEndian.Uint32(line[4:]), last)
	if last {
		// A second line of the current word is lost.
		d.second = nil
		d.active = false
		d.full = true
	}
}
