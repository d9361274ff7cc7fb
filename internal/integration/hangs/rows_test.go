package hangs_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zrlmpi/zrlmpid/diagnosis"
	"github.com/zrlmpi/zrlmpid/diagnosis/infer"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// row is a kind of hang.
type row struct {
	group, name string
	kinds       string // kinds of nodes, fpga or cpu; all by default
	// host is the program of rank 0, and node the program of the node, by default the mirror of host.
	host, node string
	faults     []fault
	// hostMap is a wrong address of the node in the host's configuration, and nodeMap a wrong address of the host in
	// the node's configuration. swapped means that the host's configuration swaps ranks 1 and 2.
	hostMap, nodeMap string
	swapped          bool
	peer, defaults   string // of the host's configuration
	// refuses means that the node's system reports a closed port once the node is gone.
	refuses, nodeDown, hostDown bool
	// do is an action to execute after the given time, or when a fault is applied.
	do    func(h *nodeHang)
	after time.Duration
	// truths lists the injected cause under each name that a diagnosis may give it. ends lists the kinds of nodes with
	// which the host's program does not hang, but continues by itself or fails.
	truths []truth
	ends   string
}

const (
	both   = "fpga cpu"
	either = "later" // the machine's speed determines whether the program is seen to continue
)

// truth is a cause at a rank, or between two ranks. If packets are lost, rank is their sender.
type truth struct {
	cause      string
	rank, peer int // anyPeer matches any
}

func (r *row) isTrue(p infer.Possibility) bool {
	return slices.ContainsFunc(r.truths, func(t truth) bool {
		is := func(rank, found int) bool { return rank == anyPeer || rank == found }
		return t.cause == string(p.Cause) && is(t.rank, p.Rank) && is(t.peer, p.Peer)
	})
}

// causedBy returns a cause at a rank, and ofPair a cause between the two ranks.
func causedBy(rank int, causes ...string) (list []truth) {
	for _, c := range causes {
		list = append(list, truth{c, rank, anyPeer})
	}
	return list
}

func ofPair(causes ...string) []truth { return causedBy(anyPeer, causes...) }

// lostIn returns the names for packets lost in a direction.
func lostIn(d direction) []truth {
	return []truth{{diagnosis.LostPacket, d.sender(), d.receiver()}, {diagnosis.PacketsBlocked, d.sender(), d.receiver()}}
}

// mark returns a fault that only marks a datagram at which an action is executed.
func mark(d direction, kind protocol.Type, nth int, mutes bool) []fault {
	return []fault{{dir: d, kind: kind, nth: nth, times: 1, passes: true, mutes: mutes}}
}

// Actions of rows.

func kills(h *nodeHang) {
	last := len(h.nodes) - 1
	h.nodes[last].stop()
	h.nodes = h.nodes[:last]
	if h.refuses {
		h.relay().refuse()
	}
}

func stops(h *nodeHang) { h.nodes[len(h.nodes)-1].pause() }

func restarts(h *nodeHang) {
	kills(h)
	h.startNode()
	h.relay().mute(false)
}

func starts(h *nodeHang) { h.startNode() }

func startsHost(h *nodeHang) {
	h.start(here{}, h.text, 0)
	h.runHost()
}

// endsProgram ends the host's program, while its daemon keeps running, and runs the next program.
func endsProgram(h *nodeHang) {
	h.endProgram()
	<-h.programEnded
	h.ranks[0].Engine.ProgramEnded(false)
	h.runHost()
}

func restartsHost(h *nodeHang) {
	h.endProgram()
	<-h.programEnded
	h.stop(0, time.Millisecond)
	h.relay().mute(false)
	startsHost(h)
}

const (
	request, clear, data, ack = protocol.SendRequest, protocol.ClearToSend, protocol.Data, protocol.Ack
	ms                        = time.Millisecond
)

// rows returns the table of hangs.
func rows() (list []row) {
	for _, sends := range []bool{true, false} {
		does, there := "receives", in // the direction of DATA
		if sends {
			does, there = "sends", out
		}
		back := there.other()
		dirs := map[protocol.Type]direction{request: there, clear: back, data: there, ack: back, payload: there}
		short, long := "r4 r4 r4", "r1000 r1000 r1000"
		if sends {
			short, long = mirror(short), mirror(long)
		}
		add := func(group, name string, r row) {
			r.group, r.name = group, fmt.Sprintf("%s, %s, host %s", group, name, does)
			if r.host == "" {
				r.host = short
			}
			list = append(list, r)
		}
		for _, kind := range []protocol.Type{request, clear, data, ack} {
			d := dirs[kind]
			for times, often := range []string{"always", "once"} {
				r := row{faults: []fault{{dir: d, kind: kind, nth: 2, times: times}}, truths: lostIn(d)}
				if times == 1 && !(sends && kind == ack) { // a lost ACK is not retransmitted
					r.ends = both
				}
				add("packet lost", fmt.Sprintf("%v %s", kind, often), r)
				if r.host = long; kind == data || kind == ack {
					add("packet lost", fmt.Sprintf("%v of 1000 words %s", kind, often), r)
				}
			}
			for late, rounds := range map[time.Duration]int{2 * ms: 10, 150 * ms: 3} {
				for how, program := range map[string]string{"one way": short[:3],
					"there and back": short[:3] + mirror(short[:3])} {
					add("late copy", fmt.Sprintf("%v after %v, %s", kind, late, how),
						row{host: strings.Repeat(program, rounds),
							faults: []fault{{dir: d, kind: kind, nth: 2, times: 1, copied: late}},
							truths: causedBy(1, diagnosis.DeadEnd), ends: both})
				}
			}
		}
		for times, often := range []string{"always", "once"} {
			r := row{host: long, faults: []fault{{dir: there, kind: payload, nth: 3, times: times}},
				truths: lostIn(there)}
			switch {
			case times == 1 && sends:
				r.ends = "cpu" // an FPGA would read the header of a retransmission as payload
			case times == 1:
				r.ends = both
			}
			add("packet lost", "last datagrams of 1000 words "+often, r)
		}
		for _, d := range []direction{out, in} {
			name := map[direction]string{out: "to the node", in: "to the host"}[d]
			for _, nth := range []int{1, 3} {
				when := map[int]string{1: "from the beginning", 3: "later"}[nth]
				add("direction blocked", name+" "+when, row{faults: []fault{{dir: d, nth: nth}}, truths: lostIn(d)})
				r := row{faults: []fault{{dir: d, nth: nth, translated: true}},
					truths: append(ofPair(diagnosis.WrongAddress), lostIn(d)...)}
				if d == out && !sends {
					r.ends = "cpu" // such a node checks the address of SEND_REQUEST and DATA only
				}
				add("address translated", name+" "+when, r)
			}
			add("direction delayed", name+" by 4 s",
				row{faults: []fault{{dir: d, nth: 3, delay: 4 * time.Second}}, truths: lostIn(d), ends: either})
		}
		add("path cut", "later",
			row{faults: []fault{{dir: out, nth: 3}, {dir: in, nth: 3}}, truths: append(lostIn(out), lostIn(in)...)})
		for words, datagrams := range map[int]int{300: 1, 1000: 3} {
			for _, messages := range []int{0, 1} {
				program := strings.ReplaceAll(short, "4", strconv.Itoa(words))
				add("path MTU", fmt.Sprintf("600 bytes after %d messages of %d words", messages, words),
					row{host: program,
						faults: []fault{{dir: there, nth: 1 + datagrams*messages, longer: 600}},
						truths: []truth{{diagnosis.PathMTU, there.sender(), there.receiver()}}})
			}
		}

		add("wrong rank map", "host has a host that is down", row{hostMap: "9", truths: ofPair(diagnosis.WrongAddress)})
		add("wrong rank map", "host has a host that refuses", row{hostMap: "9", refuses: true,
			truths: append(ofPair(diagnosis.WrongAddress), causedBy(1, diagnosis.NetworkError)...)})
		add("wrong rank map", "host has a port", row{hostMap: "4:2730", truths: ofPair(diagnosis.WrongAddress)})
		add("wrong rank map", "host has ranks 1 and 2 swapped",
			row{swapped: true, truths: ofPair(diagnosis.WrongAddress)})
		add("wrong rank map", "node has another host", row{nodeMap: "9", truths: ofPair(diagnosis.WrongAddress)})
		profile := ofPair(diagnosis.WrongProfile)
		// the profiles differ by the tag
		add("wrong profile", "host has v0.9", row{peer: "software", truths: profile, ends: both,
			defaults: "profile: v0.9, deadlines: {clear: 1m, data: 1m, ack: 1m}"})
		add("wrong profile", "host has extended", row{peer: "software", defaults: extendedUDP, truths: profile})

		count := causedBy(1, diagnosis.CountMismatch)
		other, cycle := ofPair(diagnosis.DatatypeMismatch, diagnosis.OtherCall), ofPair(diagnosis.WaitCycle,
			diagnosis.OtherCall)
		if sends {
			add("wrong datatype", "FLOAT for INT", row{kinds: "fpga", host: "s4 s4f", node: "r4 r4", truths: other})
			add("wrong count", "node receives more", row{host: "s4 s4", node: "r4 r9", truths: count, ends: both})
			add("wrong count", "node receives more, of 1000 words",
				row{host: "s1000 s1000", node: "r1000 r1400", truths: count, ends: "fpga"})
			add("wrong order of calls", "both send", row{host: "s4 s4", node: "r4 s4", truths: cycle})
			add("program computes", "after a message", row{node: "r4", truths: causedBy(1, diagnosis.ProgramComputes)})
			add("program ended", "after a message", row{node: "r4 e", truths: causedBy(1, diagnosis.ProcessEnded)})
		} else {
			add("wrong datatype", "FLOAT for INT", row{kinds: "fpga", host: "r4 r4f", node: "s4 s4", truths: other})
			add("wrong count", "host receives less", row{host: "r4 r4", node: "s4 s9", truths: count, ends: both})
			add("wrong order of calls", "both receive", row{host: "r4 r4", node: "s4 r4", truths: cycle})
			add("program computes", "after a message", row{node: "s4", truths: causedBy(1, diagnosis.ProgramComputes)})
			add("program ended", "after a message", row{node: "s4 e", truths: causedBy(1, diagnosis.ProcessEnded)})
			// The host starts when the node no longer retransmits its request.
			add("started late", "host", row{hostDown: true, do: startsHost, after: 3600 * ms,
				truths: causedBy(0, diagnosis.StartedLate, diagnosis.ProcessEnded)})
		}
		down := causedBy(1, diagnosis.ProcessEnded)
		refused := causedBy(1, diagnosis.ProcessEnded, diagnosis.NetworkError)
		add("never started", "silent", row{nodeDown: true, truths: down})
		add("never started", "refused", row{kinds: "cpu", nodeDown: true, refuses: true, truths: refused})
		add("started late", "node", row{nodeDown: true, do: starts, after: 2500 * ms, truths: down, ends: both})

		// The moments are in the second message, or between the first and the second.
		marks := []struct {
			name string
			dir  direction
			kind protocol.Type
			nth  int
		}{
			{"before a message", back, ack, 1}, {"after SEND_REQUEST", there, request, 2},
			{"after CLEAR_TO_SEND", back, clear, 2}, {"after DATA", there, data, 2},
		}
		for i, m := range marks {
			program := short
			if i%2 == 1 {
				program = long
			}
			twice := mirror(program) + " " + mirror(program) // the host's next program makes the same number of calls
			at := func(mutes bool) []fault { return mark(m.dir, m.kind, m.nth, mutes) }
			add("process killed", m.name, row{host: program, faults: at(true), do: kills, truths: down})
			node, host := both, both // the node's first call is retransmitted, or not made yet
			if sends && i > 1 {
				node = ""
			}
			if sends && m.kind == data {
				host = "cpu" // an FPGA reads the next message as the rest of this message
			}
			add("node restarted", m.name,
				row{host: program, faults: at(true), do: restarts, truths: causedBy(1, diagnosis.Restarted),
					ends: node})
			add("host's process restarted", m.name, row{host: program, node: twice, faults: at(true), do: restartsHost,
				truths: causedBy(0, diagnosis.Restarted), ends: host})
			add("host's program ended", m.name, row{host: program, node: twice, faults: at(false), do: endsProgram,
				truths: causedBy(0, diagnosis.Restarted), ends: both})
			if i < 2 {
				add("process killed", m.name+", refused", row{kinds: "cpu", host: program, faults: at(true), do: kills,
					refuses: true, truths: refused})
				add("process stopped", m.name, row{kinds: "cpu", host: program, faults: at(true), do: stops,
					truths: causedBy(1, diagnosis.ProcessStopped)})
			}
		}
	}
	return list
}
