// Package vcd adds packets to the waves of a simulation, so that a viewer shows both on one time axis. The waves are
// value change dumps (VCD, IEEE 1800). Packets appear as values of two string signals, sent and received, in a separate
// scope. Strings are an extension of the format that GTKWave supports.
//
// Memory must not grow with the size of the waves.
package vcd

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Packet is a packet sent or received by the rank whose role is simulated.
type Packet struct {
	// Cycle is the simulation's clock cycle at which the packet appears.
	Cycle  uint64
	IsSent bool
	// Text must not contain blanks.
	Text string
}

// ErrFormat is returned if the waves are not in VCD format.
var ErrFormat = errors.New("not a value change dump (VCD)")

// declaration declares the signals for packets. Their identifier codes do not clash with a simulator's codes, which are
// shorter.
const declaration = "$scope module zrlmpi $end\n$var string 1 zrlmpi_sent sent $end\n$var string 1 zrlmpi_received " +
	"received $end\n$upscope $end\n"

// writer writes packets at their times.
type writer struct {
	out     *bufio.Writer
	period  uint64
	packets []Packet // still to be written, by cycle
}

// Write copies waves to out and inserts packets. A clock cycle lasts for period time units of the waves. Packets with
// the same cycle remain in order.
func Write(out io.Writer, waves io.Reader, period uint64, packets []Packet) error {
	w := &writer{bufio.NewWriter(out), period, slices.Clone(packets)}
	slices.SortStableFunc(w.packets, func(a, b Packet) int { return cmp.Compare(a.Cycle, b.Cycle) })
	if n := len(packets); n > 0 && w.packets[n-1].Cycle > math.MaxInt64/period { // times in GTKWave are signed
		return fmt.Errorf("cycle %d with %d units of time for each: the time is too great for a value change dump",
			w.packets[n-1].Cycle, period)
	}
	if err := w.copy(bufio.NewReaderSize(waves, 1<<16)); err != nil {
		return err
	}
	w.writeUntil(math.MaxUint64)
	return w.out.Flush()
}

// copy copies the complete lines of waves, and inserts all packets up to the last time that these lines contain.
func (w *writer) copy(in *bufio.Reader) error {
	const end = "$enddefinitions"
	declared, begins, number := false, true, 1
	for {
		part, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && !declared:
			return fmt.Errorf("waves: %w: it has no %s", ErrFormat, end)
		case errors.Is(err, io.EOF):
			return nil // the last line is incomplete: the simulator is still writing
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("waves: %w", err)
		}
		text := bytes.TrimSpace(part)
		switch {
		case !begins || len(text) == 0:
		case number == 1 && text[0] != '$':
			return fmt.Errorf("waves: %w: it begins with %.20q", ErrFormat, text)
		case !declared && bytes.HasPrefix(text, []byte(end)):
			declared = true
			fmt.Fprint(w.out, declaration)
		case declared && text[0] == '#':
			at, err := strconv.ParseUint(string(text[1:]), 10, 64)
			if err != nil {
				return fmt.Errorf("waves, line %d: %w: %.30q is no time", number, ErrFormat, text)
			}
			w.writeUntil(at)
		}
		if _, err := w.out.Write(part); err != nil {
			return err
		}
		if begins = err == nil; begins {
			number++
		}
	}
}

// writeUntil writes all packets up to and including the time end. Each packet is preceded by its time.
func (w *writer) writeUntil(end uint64) {
	for len(w.packets) > 0 && w.packets[0].Cycle*w.period <= end {
		fmt.Fprintf(w.out, "#%d\n", w.packets[0].Cycle*w.period)
		w.writeCycle()
	}
}

// writeCycle writes the packets of the next cycle.
func (w *writer) writeCycle() {
	n := 0
	for n < len(w.packets) && w.packets[n].Cycle == w.packets[0].Cycle {
		n++
	}
	for _, signal := range []struct {
		name string
		sent bool
	}{{"zrlmpi_sent", true}, {"zrlmpi_received", false}} {
		var texts []string
		for _, p := range w.packets[:n] {
			if p.IsSent == signal.sent {
				texts = append(texts, p.Text)
			}
		}
		if texts != nil {
			fmt.Fprintf(w.out, "s%s %s\n", strings.Join(texts, ","), signal.name)
		}
	}
	w.packets = w.packets[n:]
}
