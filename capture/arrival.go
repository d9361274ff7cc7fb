package capture

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// maxSums is the maximum number of datagram checksums that are kept for one message.
const maxSums = 256

// dataProgress is the part of a message received since its last DATA header.
type dataProgress struct {
	datagrams int64
	bytes     int64
	// tailReceived is true if the last datagram arrived although an earlier one is missing.
	tailReceived bool
	isStream     bool // over TCP, which has no datagrams
	// sums holds the checksums of the first maxSums continuation datagrams, in order of arrival.
	sums []uint32
}

// shape returns the shape of the sender's messages: the FPGA shape if the sender pads as an FPGA does, and the CPU
// shape otherwise.
func (f *flow) shape() protocol.Shape {
	if f.tracker.ranks.isFPGA(f.from) {
		return protocol.FPGAShape(true)
	}
	return protocol.CPUShape()
}

// startData resets the progress of a DATA transfer to its first datagram, which contains the header.
func (f *flow) startData(m *message, e *Event) {
	f.sums = f.sums[:0]
	m.dataProgress = dataProgress{datagrams: 1, bytes: e.Bytes, isStream: e.Proto == pcapng.TCP, sums: f.sums}
}

// addContinuation records a continuation datagram. In a retransmission, it compares checksums with the previous
// transmission. The first difference shows the position of a datagram that was lost from the previous transmission,
// unless the preceding datagram contains the same bytes.
func (f *flow) addContinuation(msg *message, sum uint32, truncated int) {
	progress, before := &msg.dataProgress, msg.progressAtLoss
	n := len(progress.sums)
	if truncated > 0 || int64(n) != progress.datagrams-2 || n == maxSums {
		return // the sums are incomplete
	}
	if before != nil && !msg.isCompared && n <= len(before.sums) && (n == len(before.sums) || before.sums[n] != sum) {
		msg.isCompared = true
		if n == 0 || progress.sums[n-1] != sum {
			msg.lostDatagram = progress.datagrams
		}
	}
	progress.sums = append(progress.sums, sum)
	f.sums = progress.sums
}

// inferDataLoss records that part of the message's DATA was lost, and saves the progress made before the loss.
func (f *flow) inferDataLoss(msg *message) {
	if msg.inferredLoss == "" {
		before := msg.dataProgress
		msg.progressAtLoss, f.sums = &before, nil
		msg.dataProgress.sums = nil
	}
	msg.inferLoss(dataDatagram)
}

// progressText describes how much of DATA arrived and, if known, which part is missing. The missing part is often
// unknown, because datagrams are not numbered.
func (f *flow) progressText(msg *message, progress *dataProgress) string {
	total := int64(msg.Words) * protocol.WordLen
	if progress.isStream {
		return fmt.Sprintf("%d of %d bytes arrived", progress.bytes, total)
	}
	shape := f.shape()
	count := shape.NumDatagrams(msg.Words)
	text := fmt.Sprintf("%d of %d datagrams (%d of %d bytes) arrived", progress.datagrams, count, progress.bytes, total)
	missing := count - progress.datagrams
	if missing <= 0 {
		return text
	}
	offset := func(datagram int64) int64 { // counted from 1
		if datagram > count {
			return total
		}
		return shape.PayloadAt(0, shape.PayloadBytes(msg.Words)) + (datagram-2)*int64(shape.MaxDatagram)
	}
	// The numbers of the missing datagrams are between first and last, inclusive.
	first, last := int64(2), count
	switch {
	case msg.lostDatagram > 0 && missing == 1:
		first, last = msg.lostDatagram, msg.lostDatagram
	case progress.tailReceived:
		last = count - 1
	case missing == 1 && shape.PayloadBytes(msg.Words)-offset(count) != int64(shape.MaxDatagram):
		first = count // its length differs from all others
	}
	where := fmt.Sprintf("datagram %d", first)
	switch among := last - first + 1; {
	case among > missing:
		where = fmt.Sprintf("%d of the datagrams %d to %d", missing, first, last)
	case among > 1:
		where = fmt.Sprintf("datagrams %d to %d", first, last)
	}
	verb := "are"
	if missing == 1 {
		verb = "is"
	}
	return fmt.Sprintf("%s, %s (bytes %d–%d) %s missing", text, where, offset(first), offset(last+1)-1, verb)
}

// formatCount formats a count n followed by its noun, which gets a plural s unless n is 1.
func formatCount(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
