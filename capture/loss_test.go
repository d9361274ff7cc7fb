package capture_test

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// dataUnits returns the datagrams of DATA from rank 0 to rank 1, 20 µs apart. The words are all 0 if zeros is true,
// and all different otherwise.
func dataUnits(at time.Duration, words uint32, shape protocol.Shape, zeros bool) (units []pcapng.Unit) {
	payload := make([]byte, shape.PayloadBytes(words))
	for i := range words {
		if !zeros {
			binary.LittleEndian.PutUint32(payload[i*protocol.WordLen:], 0x9e3779b9*(i+1))
		}
	}
	for off, total := int64(0), int64(len(payload)); off < total; {
		n := shape.PayloadAt(off, total)
		u := packet(at, protocol.Data, protocol.SendInt, 0, 1, payload[off:off+n]...)
		if off > 0 {
			u.Data = u.Data[protocol.HeaderLen:]
		} else {
			binary.LittleEndian.PutUint32(u.Data[12:], words)
		}
		units = append(units, u)
		off += n
		at += 20 * time.Microsecond
	}
	return units
}

// fragmented returns a message from rank 0 to rank 1 without its ACK.
func fragmented(words uint32, shape protocol.Shape) []pcapng.Unit {
	return append([]pcapng.Unit{
		packet(0, protocol.SendRequest, protocol.SendInt, 0, 1),
		packet(1*ms, protocol.ClearToSend, protocol.RecvInt, 1, 0),
	}, dataUnits(2*ms, words, shape, false)...)
}

func acked(at time.Duration, units ...[]pcapng.Unit) []pcapng.Unit {
	return renumber(append(slices.Concat(units...), packet(at, protocol.Ack, protocol.RecvInt, 1, 0)))
}

// oneFinding checks that there is exactly one finding, and that it has the given kind and contains the given texts. If
// a text begins with "not ", the rest of it must be absent.
func oneFinding(t *testing.T, units []pcapng.Unit, kind capture.FindingKind, texts ...string) {
	t.Helper()
	r := analyze(units)
	check(t, r, nil, []capture.FindingKind{kind})
	for _, text := range texts {
		unwanted, not := strings.CutPrefix(text, "not ")
		if len(r.Findings) == 1 && strings.Contains(r.Findings[0].Text, unwanted) == not {
			t.Errorf("%q: %s", text, r.Findings[0].Text)
		}
	}
}

// TestLostDatagram: the finding states how much arrived and, as far as it can be known, which part is missing.
func TestLostDatagram(t *testing.T) {
	cpu, fpga := protocol.CPUShape(), protocol.FPGAShape(true)
	padding := func(units []pcapng.Unit) []pcapng.Unit { // after a message that shows that rank 0 pads
		first := whole(-10*ms, 0, 1)
		first[2].Data = append(first[2].Data, 0, 0, 0, 0)
		return append(first, units...)
	}
	for name, c := range map[string]struct {
		units []pcapng.Unit
		want  string
	}{
		"middle of three": {acked(5*ms, drop(fragmented(1000, cpu), 4)),
			"2 of 3 datagrams (2584 of 4000 bytes) arrived, datagram 2 (bytes 1384–2799) is missing"},
		"last of three": {acked(5*ms, drop(fragmented(1000, cpu), 5)),
			"2 of 3 datagrams (2800 of 4000 bytes) arrived, datagram 3 (bytes 2800–3999) is missing"},
		"all but the first": {acked(5*ms, drop(fragmented(1000, cpu), 4, 5)),
			"1 of 3 datagrams (1384 of 4000 bytes) arrived, datagrams 2 to 3 (bytes 1384–3999) are missing"},
		"one of five": {acked(5*ms, drop(fragmented(1600, cpu), 5)),
			"4 of 5 datagrams (4984 of 6400 bytes) arrived, 1 of the datagrams 2 to 4 (bytes 1384–5631) is missing"},
		"one of four, all full": {acked(5*ms, drop(fragmented(346+3*354, cpu), 5)),
			"3 of 4 datagrams (4216 of 5632 bytes) arrived, 1 of the datagrams 2 to 4 (bytes 1384–5631) is missing"},
		"two of six": {acked(5*ms, drop(fragmented(2000, cpu), 4, 6)),
			"4 of 6 datagrams (5168 of 8000 bytes) arrived, 2 of the datagrams 2 to 5 (bytes 1384–7047) are missing"},
		"one of five, retransmitted": {acked(205*ms, drop(fragmented(1600, cpu), 5),
			dataUnits(203*ms, 1600, cpu, false)),
			"4 of 5 datagrams (4984 of 6400 bytes) arrived, datagram 3 (bytes 2800–4215) is missing; 1 packet was " +
				"retransmitted"},
		"the one before the last of five, retransmitted": {acked(205*ms, drop(fragmented(1600, cpu), 6),
			dataUnits(203*ms, 1600, cpu, false)),
			"datagram 4 (bytes 4216–5631) is missing"},
		"one of five equal ones, retransmitted": {
			acked(205*ms, drop(fragmented(1600, cpu)[:2]), drop(dataUnits(2*ms, 1600, cpu, true), 3),
				dataUnits(203*ms, 1600, cpu, true)),
			"1 of the datagrams 2 to 4 (bytes 1384–5631) is missing"},
		"middle of three, padded": {acked(5*ms, padding(drop(fragmented(1001, fpga), 4))),
			"2 of 3 datagrams (2588 of 4004 bytes) arrived, datagram 2 (bytes 1384–2799) is missing"},
		"middle of three, the last of 1424 bytes": {acked(5*ms, padding(drop(fragmented(1055, fpga), 4))),
			"2 of 3 datagrams (2804 of 4220 bytes) arrived, datagram 2 (bytes 1384–2799) is missing"},
		"the first": {acked(5*ms, drop(fragmented(1000, cpu), 3)),
			"DATA was lost, or is not in the recording; 2 continuation datagrams (2616 bytes) arrived without it"},
		"the last, and the sender continues": {renumber(append(drop(fragmented(1000, cpu), 5), whole(3000*ms, 0, 1)...)),
			"2 of 3 datagrams (2800 of 4000 bytes) arrived, datagram 3 (bytes 2800–3999) is missing"},
	} {
		t.Run(name, func(t *testing.T) { oneFinding(t, c.units, capture.LostPacket, c.want) })
	}
	for _, name := range []string{"loss_bare_to_cpu_wrong_data", "late_clear_lost_bare_to_fpga"} {
		t.Run(name, func(t *testing.T) {
			oneFinding(t, recorded(t, name), capture.LostPacket,
				"2 of 3 datagrams (2588 of 4004 bytes) arrived, datagram 2 (bytes 1384–2799) is missing; 1 packet "+
					"was retransmitted",
				"acknowledges wrong words or crashes", "acknowledges corrupt data")
		})
	}
	t.Run("at the end", func(t *testing.T) {
		oneFinding(t, drop(fragmented(1000, cpu), 5), capture.StillWaiting, " for DATA from rank 0",
			": 2 of 3 datagrams (2800 of 4000 bytes) arrived, datagram 3 (bytes 2800–3999) is missing")
	})
}

// TestDuplicatedData: a copy of DATA yields one finding. If the receiver may be a deployed node, the finding describes
// the effect on it.
func TestDuplicatedData(t *testing.T) {
	const (
		fpga = "stores the second header as payload and acknowledges corrupt data, and the next message may be " +
			"corrupt too (trap 4)"
		library = "stores the second header as payload, and acknowledges wrong words or crashes"
	)
	sound := fragmented(1000, protocol.CPUShape())
	pads := whole(-10*ms, 1, 0)
	pads[2].Data = append(pads[2].Data, 0, 0, 0, 0)
	insists := []pcapng.Unit{} // rank 1 retransmits longer than deployed nodes
	for _, at := range []time.Duration{-30000, -29900, -28800, -26700, -23700, -20700, -17700} {
		insists = append(insists, packet(at*ms, protocol.SendRequest, protocol.SendInt, 1, 0))
	}
	for name, c := range map[string]struct {
		units []pcapng.Unit
		texts []string
	}{
		"at once": {acked(5*ms, double(sound, 3, time.Microsecond)),
			[]string{"DATA 0→1 SEND_INT size=1000 arrived twice within 50ms, and has 3 datagrams", "an FPGA " + fpga,
				"upstream's CPU library " + library, "rank 1 may be either"}},
		"in the middle":   {acked(5*ms, double(sound, 3, 30*time.Microsecond)), []string{fpga, library}},
		"behind the last": {acked(5*ms, double(sound, 3, 100*time.Microsecond)), []string{fpga, library}},
		"all of it": {acked(5*ms, sound, dataUnits(3*ms, 1000, protocol.CPUShape(), false)),
			[]string{fpga, library}},
		"to an FPGA": {acked(5*ms, pads, double(sound, 3, time.Microsecond)),
			[]string{"rank 1, which pads as an FPGA does, " + fpga, "not " + library}},
		"to another node": {acked(5*ms, whole(-10*ms, 1, 0), double(sound, 3, time.Microsecond)),
			[]string{"not " + fpga, "upstream's CPU library, which rank 1 may run, " + library}},
		"a continuation": {acked(5*ms, double(sound, 4, time.Microsecond)), []string{
			"the duplicate cannot be distinguished from the next part, so that the data is corrupt, or retransmitted",
			"an FPGA stores the copy as payload and acknowledges corrupt data"}},
	} {
		t.Run(name, func(t *testing.T) { oneFinding(t, renumber(c.units), capture.DuplicatePacket, c.texts...) })
	}
	t.Run("to a zrlmpid", func(t *testing.T) {
		r := analyze(renumber(append(insists, acked(5*ms, double(sound, 3, time.Microsecond))...)))
		i := slices.IndexFunc(r.Findings, func(f capture.Finding) bool { return f.Kind == capture.DuplicatePacket })
		if i < 0 || strings.Contains(r.Findings[i].Text, "corrupt") || strings.Contains(r.Findings[i].Text, "crashes") {
			t.Errorf("%+v", r.Findings)
		}
	})
	t.Run("and no ACK", func(t *testing.T) {
		r := analyze(renumber(double(sound, 3, 100*time.Microsecond)))
		check(t, r, nil, []capture.FindingKind{capture.DuplicatePacket, capture.StillWaiting})
		if text := r.Findings[len(r.Findings)-1].Text; !strings.Contains(text, " for ACK from rank 1") {
			t.Error(text)
		}
	})
	t.Run("one datagram", func(t *testing.T) {
		oneFinding(t, acked(5*ms, double(fragmented(346, protocol.CPUShape()), 3, time.Microsecond)),
			capture.DuplicatePacket, "not corrupt", "not crashes")
	})
	t.Run("retransmitted", func(t *testing.T) {
		oneFinding(t, acked(205*ms, sound, dataUnits(203*ms, 1000, protocol.CPUShape(), false)), capture.LostPacket,
			"where a part of it was received, an FPGA "+fpga,
			"upstream's CPU library "+library+", if not much more than 100 ms have passed since the last datagram")
	})
}

// TestRequestsAreCounted: the sender's own packets decide whether it waits forever, not the number of retransmissions
// that deployed nodes send.
func TestRequestsAreCounted(t *testing.T) {
	asking := func(seconds ...float64) (units []pcapng.Unit) {
		for _, s := range seconds {
			units = append(units, packet(time.Duration(s*float64(time.Second)), protocol.SendRequest, protocol.SendInt,
				0, 1))
		}
		return units
	}
	// Later packets of two other ranks show how long the sender has been silent.
	others := func(at float64) (units []pcapng.Unit) {
		units = whole(time.Duration(at*float64(time.Second)), 0, 1)
		for i := range units {
			units[i].Src, units[i].Dst = elsewhere(units[i].Src), elsewhere(units[i].Dst)
		}
		return units
	}
	deployed, ours := []float64{0, 0.1, 1.2, 3.3}, []float64{0, 0.1, 1.2, 3.3, 6.3, 9.3, 12.3}
	again := func(list []float64, at float64) (out []float64) {
		for _, s := range list {
			out = append(out, s+at)
		}
		return out
	}
	for name, c := range map[string]struct {
		units []pcapng.Unit
		kind  capture.FindingKind
		texts []string
	}{
		"not yet three times": {asking(0, 0.1, 1.2), capture.NeverCleared,
			[]string{"retransmitted 2 times", "not forever"}},
		"three times": {asking(deployed...), capture.NeverCleared,
			[]string{"retransmitted 3 times: a deployed node now waits forever, a zrlmpid continues, and the recording " +
				"ends too soon to decide"}},
		"three times, then no more": {append(asking(deployed...), others(10)...), capture.RetransmissionsExhausted,
			[]string{"retransmitted 3 times, and then not for 6.7s: a deployed node has stopped and waits forever"}},
		"four times": {asking(ours[:5]...), capture.NeverCleared,
			[]string{"retransmitted 4 times: a deployed node stops after 3 times, so rank 0 is a zrlmpid, or was " +
				"started again", "not forever"}},
		"six times": {asking(ours...), capture.NeverCleared,
			[]string{"retransmitted 6 times, and rank 0 continues", "not forever", "not ever:"}},
		"six times, then no more": {append(asking(ours...), others(30)...), capture.NeverCleared,
			[]string{"retransmitted 6 times, and then not for 17.7s: rank 0 is no deployed node", "its call ended",
				"not forever"}},
		"a program that was started again": {append(asking(append(slices.Clone(deployed), again(deployed, 7)...)...),
			others(20)...), capture.RetransmissionsExhausted,
			[]string{"retransmitted 3 times, and then not for 9.7s"}},
		"a zrlmpid's next message": {append(append(asking(ours...), whole(13*time.Second, 0, 1)[1:]...),
			asking(again(deployed, 20)...)...), "",
			[]string{"retransmitted 3 times, and rank 0 continues", "not forever"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := analyze(renumber(c.units))
			if c.kind != "" {
				check(t, r, nil, []capture.FindingKind{c.kind})
			}
			last := r.Findings[len(r.Findings)-1].Text
			for _, text := range c.texts {
				unwanted, not := strings.CutPrefix(text, "not ")
				if strings.Contains(last, unwanted) == not {
					t.Errorf("%q: %s", text, last)
				}
			}
		})
	}
	t.Run("DATA", func(t *testing.T) {
		oneFinding(t, recorded(t, "loss_fpga_ack_lost"), capture.RetransmissionsExhausted,
			"it has sent DATA again 3 times, which is as often as any node does: a deployed one now waits forever, a "+
				"zrlmpid reports an error")
	})
}

func elsewhere(a netip.AddrPort) netip.AddrPort {
	b := a.Addr().As4()
	b[2] = 9
	return netip.AddrPortFrom(netip.AddrFrom4(b), a.Port())
}
