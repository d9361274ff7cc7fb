package diagnose_test

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// truth is an injected cause: the fault, the rank at fault, and the other rank concerned, or -1. For lost packets, rank
// is the sender and other the receiver.
type truth struct {
	fault       fault
	rank, other int
	packet      protocol.Type // type of the lost packets, or 0 for all types
}

// fault is a kind of misbehaviour that a diagnosis should name.
type fault string

const (
	faultNone       fault = "nothing"
	faultLost       fault = "packet lost"
	faultLosing     fault = "packets of a type lost"
	faultBlocked    fault = "direction blocked"
	faultCorrupt    fault = "corrupt packets"
	faultCut        fault = "path cut"
	faultCopy       fault = "late copy"
	faultDelay      fault = "packet delayed"
	faultMap        fault = "wrong rank map"
	faultNAT        fault = "address translated"
	faultProfile    fault = "wrong profile"
	faultDatatype   fault = "wrong datatype"
	faultCount      fault = "wrong count"
	faultTag        fault = "wrong tag"
	faultComm       fault = "wrong communicator"
	faultOrder      fault = "wrong order of calls"
	faultRoot       fault = "wrong root"
	faultCall       fault = "wrong collective call"
	faultCycle      fault = "cycle"
	faultComputes   fault = "computes"
	faultEnded      fault = "program ended"
	faultStopped    fault = "process stopped"
	faultDown       fault = "not running"
	faultRestarted  fault = "restarted"
	faultLate       fault = "started late"
	faultMTU        fault = "path MTU"
	faultBuffer     fault = "buffer full"
	faultRole       fault = "kernel failed"
	faultUnnamed    fault = "a cause without a name"
	faultWaits      fault = "waits elsewhere" // consequence of a fault: another rank also waits
	faultCallFailed fault = "call failed"
)

// injection injects one kind of fault into a cluster.
type injection struct {
	name string
	// arm adds the fault to a cluster that has not started, and returns the truth. It returns false if the fault is
	// impossible in this cluster.
	arm func(c *cluster) (truth, bool)
}

// when draws the time of a fault. A quarter of the faults exist from the beginning. In the search for a witness, half
// of them are near the time of the original fault, and some are seconds later.
func (c *cluster) when() time.Duration {
	from := c.now
	if c.asksBefore != nil {
		from += waited
	}
	if c.suspect != 0 {
		switch c.rng.IntN(4) {
		case 0, 1:
			return max(from, c.suspect-time.Duration(c.rng.IntN(20_000))*time.Microsecond)
		case 2:
			return from + time.Duration(c.rng.IntN(4000))*time.Millisecond
		}
	}
	if c.rng.IntN(4) == 0 {
		return from
	}
	return from + time.Duration(20+c.rng.IntN(200))*time.Millisecond
}

// pair draws two ranks that exchange messages.
func (c *cluster) pair() (a, b int) {
	b = 1 + c.rng.IntN(len(c.nodes)-1)
	return 0, b
}

// between reports whether rank from sent the datagram to the address of rank to.
func (c *cluster) between(d *datagram, from, to int) bool {
	return d.sender == from && d.to == c.nodes[to].address
}

// lose loses datagrams from one rank to another, starting at a random time: of the given type, or of all types if kind
// is 0. If once is set, it loses only one.
func lose(c *cluster, from, to int, kind protocol.Type, once bool) {
	at, done := c.when(), false
	c.fates = append(c.fates, func(d *datagram) {
		if c.now < at || done || !c.between(d, from, to) || kind != 0 && d.kind != kind {
			return
		}
		d.lost, done = true, once
		c.shows()
	})
}

// shows records the time at which the fault first took effect.
func (c *cluster) shows() {
	if c.trigger == 0 {
		c.trigger = c.now
	}
}

// direction draws a pair and returns it in the given direction: out means from rank 0 to the other rank.
func direction(c *cluster, out bool) (from, to int) {
	a, b := c.pair()
	if out {
		return a, b
	}
	return b, a
}

// injections returns all injections.
func injections() (list []injection) {
	add := func(name string, arm func(c *cluster) (truth, bool)) { list = append(list, injection{name, arm}) }
	towards := map[bool]string{true: "to the node", false: "to the host"}
	for _, kind := range []protocol.Type{protocol.SendRequest, protocol.ClearToSend, protocol.Data, protocol.Ack} {
		for _, out := range []bool{true, false} {
			add(fmt.Sprintf("%v lost once %s", kind, towards[out]), func(c *cluster) (truth, bool) {
				from, to := direction(c, out)
				lose(c, from, to, kind, true)
				return truth{faultLost, from, to, kind}, true
			})
			add(fmt.Sprintf("%v always lost %s", kind, towards[out]), func(c *cluster) (truth, bool) {
				from, to := direction(c, out)
				lose(c, from, to, kind, false)
				return truth{faultLosing, from, to, kind}, true
			})
		}
		add(fmt.Sprintf("late copy of %v", kind), func(c *cluster) (truth, bool) {
			a, b := direction(c, c.rng.IntN(2) == 0)
			at, done := c.when(), false
			c.fates = append(c.fates, func(d *datagram) {
				if c.now >= at && !done && c.between(d, a, b) && d.kind == kind {
					done = true
					d.copies = append(d.copies, time.Duration(c.rng.IntN(300_000))*time.Microsecond)
					c.shows()
				}
			})
			return truth{faultCopy, a, b, kind}, true
		})
	}
	for _, out := range []bool{true, false} {
		add("all lost "+towards[out], func(c *cluster) (truth, bool) {
			from, to := direction(c, out)
			lose(c, from, to, 0, false)
			return truth{fault: faultBlocked, rank: from, other: to}, true
		})
	}
	add("path cut", func(c *cluster) (truth, bool) {
		a, b := c.pair()
		at := c.when()
		c.fates = append(c.fates, func(d *datagram) {
			if c.now >= at && (c.between(d, a, b) || c.between(d, b, a)) {
				d.lost = true
				c.shows()
			}
		})
		return truth{fault: faultCut, rank: a, other: b}, true
	})
	add("packet delayed", func(c *cluster) (truth, bool) {
		a, b := direction(c, c.rng.IntN(2) == 0)
		at, done := c.when(), false
		c.fates = append(c.fates, func(d *datagram) {
			if c.now >= at && !done && c.between(d, a, b) {
				done, d.delay = true, time.Duration(200+c.rng.IntN(2000))*time.Millisecond
				c.shows()
			}
		})
		return truth{fault: faultDelay, rank: a, other: b}, true
	})
	add("rank map swapped", func(c *cluster) (truth, bool) {
		if len(c.nodes) < 3 {
			return truth{}, false
		}
		n := c.nodes[c.rng.IntN(len(c.nodes))]
		if c.rng.IntN(2) == 0 {
			n = c.nodes[0]
		}
		others := n.others()
		a, b := others[0], others[1]
		n.ranks[a], n.ranks[b] = n.ranks[b], n.ranks[a]
		c.trigger = c.now
		return truth{fault: faultMap, rank: n.rank, other: -1}, true
	})
	add("rank map names an empty address", func(c *cluster) (truth, bool) {
		a, b := direction(c, c.rng.IntN(2) == 0)
		c.nodes[a].ranks[b] = netip.MustParseAddrPort("10.0.0.99:2718")
		c.trigger = c.now
		return truth{fault: faultMap, rank: a, other: b}, true
	})
	add("rank map names another port", func(c *cluster) (truth, bool) {
		a, b := direction(c, c.rng.IntN(2) == 0)
		c.nodes[a].ranks[b] = netip.AddrPortFrom(c.nodes[b].address.Addr(), 2800)
		c.trigger = c.now
		return truth{fault: faultMap, rank: a, other: b}, true
	})
	add("address translated", func(c *cluster) (truth, bool) {
		a, b := direction(c, c.rng.IntN(2) == 0)
		at := c.when()
		c.fates = append(c.fates, func(d *datagram) {
			if c.now >= at && c.between(d, a, b) {
				d.from = netip.MustParseAddrPort("10.9.9.9:40000")
				c.shows()
			}
		})
		return truth{fault: faultNAT, rank: a, other: b}, true
	})
	add("wrong profile", func(c *cluster) (truth, bool) {
		a, b := direction(c, c.rng.IntN(2) == 0)
		if !c.nodes[a].kind.ours() || c.nodes[a].kind == standin {
			return truth{}, false
		}
		c.nodes[a].otherProfile = b + 1
		c.trigger = c.now
		return truth{fault: faultProfile, rank: a, other: b}, true
	})
	add("path MTU", func(c *cluster) (truth, bool) {
		a, b := direction(c, c.rng.IntN(2) == 0)
		at := c.when()
		c.fates = append(c.fates, func(d *datagram) {
			if c.now >= at && c.between(d, a, b) && len(d.bytes) > 600 {
				d.lost = true
				c.shows()
			}
		})
		return truth{fault: faultMTU, rank: a, other: b}, true
	})
	add("corrupt in transit", func(c *cluster) (truth, bool) { // the receiver drops the packet
		a, b := direction(c, c.rng.IntN(2) == 0)
		at := c.when()
		c.fates = append(c.fates, func(d *datagram) {
			if c.now >= at && c.between(d, a, b) {
				d.bytes[0] ^= 0x55
				c.shows()
			}
		})
		return truth{fault: faultCorrupt, rank: a, other: b}, true
	})
	add("answers with the wrong packet", func(c *cluster) (truth, bool) { // a fault of a role that no hypothesis covers
		b := 1 + c.rng.IntN(len(c.nodes)-1)
		if c.kind.extended {
			return truth{}, false
		}
		at := c.when()
		c.fates = append(c.fates, func(d *datagram) {
			h, defect := protocol.CloudFPGA.Parse(d.bytes)
			if c.now < at || d.sender != b || !defect.OK() || h.Type != protocol.ClearToSend {
				return
			}
			h.Type = protocol.Ack
			d.bytes = protocol.CloudFPGA.Append(nil, h)
			c.shows()
		})
		return truth{fault: faultUnnamed, rank: b, other: -1}, true
	})
	add("one direction takes 4 s", func(c *cluster) (truth, bool) {
		a, b := direction(c, c.rng.IntN(2) == 0)
		at := c.when()
		c.fates = append(c.fates, func(d *datagram) {
			if c.now >= at && c.between(d, a, b) {
				d.delay = 4 * time.Second
				c.shows()
			}
		})
		return truth{fault: faultDelay, rank: a, other: b}, true
	})
	list = append(list, ofPrograms()...)
	return append(list, ofProcesses()...)
}

// change applies change to one call of a rank: the first one after a random time for which wanted returns true.
func change(c *cluster, rank int, wanted func(s *step) bool, change func(s *step)) {
	at, done := c.when(), false
	p := c.nodes[rank].program
	p.before = func(s *step) {
		if c.now >= at && !done && wanted(s) {
			done = true
			change(s)
			c.shows()
		}
	}
}

func message(s *step) bool { return s.call == 0 && s.computes == 0 && !s.ends }

// ofPrograms returns the faults of programs.
func ofPrograms() (list []injection) {
	add := func(name string, arm func(c *cluster) (truth, bool)) { list = append(list, injection{name, arm}) }
	any := func(c *cluster) int { return c.rng.IntN(len(c.nodes)) }
	add("datatype", func(c *cluster) (truth, bool) {
		rank := any(c)
		if c.kind.extended || c.nodes[rank].kind == cpu {
			return truth{}, false
		}
		change(c, rank, message, func(s *step) { s.datatype = protocol.Float })
		return truth{fault: faultDatatype, rank: rank, other: -1}, true
	})
	add("count", func(c *cluster) (truth, bool) { // the receive asks for more words than are sent
		rank := any(c)
		if c.nodes[rank].kind.ours() {
			return truth{}, false
		}
		change(c, rank, func(s *step) bool { return message(s) && s.receives },
			func(s *step) { s.words += 1 + c.rng.IntN(400) })
		return truth{fault: faultCount, rank: rank, other: -1}, true
	})
	add("tag", func(c *cluster) (truth, bool) {
		rank := any(c)
		if !c.kind.extended {
			return truth{}, false
		}
		change(c, rank, message, func(s *step) { s.tag = 7 })
		return truth{fault: faultTag, rank: rank, other: -1}, true
	})
	add("communicator", func(c *cluster) (truth, bool) {
		rank := any(c)
		if !c.kind.extended {
			return truth{}, false
		}
		change(c, rank, message, func(s *step) { s.comm = 3 })
		return truth{fault: faultComm, rank: rank, other: -1}, true
	})
	add("order of calls", func(c *cluster) (truth, bool) {
		rank := any(c)
		change(c, rank, message, func(s *step) { s.receives = !s.receives; s.sync = !s.receives })
		return truth{fault: faultOrder, rank: rank, other: -1}, true
	})
	add("other peer", func(c *cluster) (truth, bool) {
		rank := any(c)
		if len(c.nodes) < 3 || !c.nodes[rank].kind.ours() {
			return truth{}, false
		}
		change(c, rank, message, func(s *step) {
			others := slices.DeleteFunc(c.nodes[rank].others(), func(r int) bool { return r == s.peer })
			s.peer, s.sync = others[c.rng.IntN(len(others))], !s.receives
		})
		return truth{fault: faultOrder, rank: rank, other: -1}, true
	})
	add("call left out", func(c *cluster) (truth, bool) {
		rank := any(c)
		change(c, rank, message, func(s *step) { *s = step{computes: time.Microsecond} })
		return truth{fault: faultOrder, rank: rank, other: -1}, true
	})
	add("root", func(c *cluster) (truth, bool) {
		if !c.kind.extended {
			return truth{}, false
		}
		rank := any(c)
		change(c, rank, func(s *step) bool { return s.call.Rooted() },
			func(s *step) { s.peer = (s.peer + 1) % len(c.nodes) })
		return truth{fault: faultRoot, rank: rank, other: -1}, true
	})
	add("collective call", func(c *cluster) (truth, bool) {
		if !c.kind.extended {
			return truth{}, false
		}
		rank := any(c)
		change(c, rank, func(s *step) bool { return s.call != 0 }, func(s *step) {
			if s.call == coll.Barrier {
				s.call, s.words = coll.Bcast, 16
			} else {
				s.call = coll.Barrier
			}
		})
		return truth{fault: faultCall, rank: rank, other: -1}, true
	})
	add("length of a collective call", func(c *cluster) (truth, bool) {
		if !c.kind.extended {
			return truth{}, false
		}
		rank := any(c)
		change(c, rank, func(s *step) bool { return s.call == coll.Allreduce }, func(s *step) { s.words *= 2 })
		return truth{fault: faultCount, rank: rank, other: -1}, true
	})
	for size := 2; size <= 4; size++ {
		for _, receiving := range []bool{true, false} {
			add(fmt.Sprintf("cycle of %d, receives %v", size, receiving), func(c *cluster) (truth, bool) {
				if len(c.nodes) < size {
					return truth{}, false
				}
				first := []int{0, 8, 8, 8}[c.rng.IntN(4)]
				for rank := range size {
					to := (rank + 1) % size
					at, done := first, false
					p := c.nodes[rank].program
					round := p.round
					p.round = func(i int) []step {
						if i < at || done {
							return round(i)
						}
						done = true
						c.shows()
						s := sends(to, 5000)
						if receiving {
							s = receives(to, 5000)
						} else if c.nodes[rank].kind.ours() {
							s.sync = true
						}
						return []step{s}
					}
				}
				return truth{fault: faultCycle, rank: 0, other: -1}, true
			})
		}
	}
	add("computes", func(c *cluster) (truth, bool) {
		rank := any(c)
		change(c, rank, func(s *step) bool { return true }, func(s *step) { *s = step{computes: forever} })
		return truth{fault: faultComputes, rank: rank, other: -1}, true
	})
	add("computes before it waits for its send", func(c *cluster) (truth, bool) {
		rank := any(c)
		p := c.nodes[rank].program
		if !c.nodes[rank].kind.ours() {
			return truth{}, false
		}
		change(c, rank, func(s *step) bool { return message(s) && !s.receives }, func(s *step) {
			s.background = true
			p.calls = []step{{computes: forever}}
		})
		return truth{fault: faultComputes, rank: rank, other: -1}, true
	})
	add("computes, and has posted a receive ahead", func(c *cluster) (truth, bool) {
		rank := any(c)
		p := c.nodes[rank].program
		if len(c.nodes) < 3 || c.nodes[rank].kind != host {
			return truth{}, false
		}
		change(c, rank, message, func(s *step) {
			others := slices.DeleteFunc(c.nodes[rank].others(), func(r int) bool { return r == s.peer })
			*s = receives(others[c.rng.IntN(len(others))], s.words)
			s.background = true
			p.calls = []step{{computes: forever}}
		})
		return truth{fault: faultComputes, rank: rank, other: -1}, true
	})
	add("program ends", func(c *cluster) (truth, bool) {
		rank := any(c)
		n := c.nodes[rank]
		change(c, rank, func(s *step) bool { return true }, func(s *step) {
			*s = step{ends: true}
			n.end()
		})
		return truth{fault: faultEnded, rank: rank, other: -1}, true
	})
	return list
}

// end ends the program of a node. If the process of the program is itself the rank, the node is gone.
func (n *node) end() {
	n.program.ended = true
	switch e, ok := n.driver.(*engine); {
	case n.c.kind.job || n.kind == cpu:
		n.gone = true
	case ok:
		e.event(func() { e.core.ProgramEnded(true) })
	}
}

// ofProcesses returns the faults of processes.
func ofProcesses() (list []injection) {
	add := func(name string, do func(n *node), fault fault, fits func(n *node) bool) {
		list = append(list, injection{name, func(c *cluster) (truth, bool) {
			n := c.nodes[c.rng.IntN(len(c.nodes))]
			if !fits(n) {
				return truth{}, false
			}
			c.after(c.when()-c.now+time.Duration(c.rng.IntN(1000))*time.Microsecond, func() {
				c.shows()
				do(n)
			})
			return truth{fault: fault, rank: n.rank, other: -1}, true
		}})
	}
	every := func(*node) bool { return true }
	process := func(n *node) bool { return n.kind != fpga }
	attached := func(n *node) bool { return n.kind == host && !n.c.kind.job }
	add("process stopped", func(n *node) { n.stopped = true }, faultStopped, process)
	add("program stopped", func(n *node) { n.program.stopped = true }, faultStopped, attached)
	add("process killed", (*node).kill, faultDown, every)
	add("program killed", func(n *node) {
		n.program.ended, n.program.current, n.program.posted = true, nil, nil
		n.program.run++
		e := n.driver.(*engine)
		e.event(func() { e.core.ProgramEnded(false) })
	}, faultEnded, attached)
	add("restarted", (*node).restart, faultRestarted, every)
	add("restarted later", func(n *node) {
		n.kill()
		n.c.after(time.Duration(1+n.c.rng.IntN(600))*time.Millisecond, n.restart)
	}, faultRestarted, every)
	add("kernel fails", func(n *node) { n.program.ended, n.program.failed = true, errRefused }, faultRole,
		func(n *node) bool { return n.kind == standin })
	add("buffer full", func(n *node) { n.deaf = true }, faultBuffer, every)
	list = append(list, injection{"never started", func(c *cluster) (truth, bool) {
		n := c.nodes[c.rng.IntN(len(c.nodes))]
		n.gone, c.trigger = true, c.now
		n.program.ended = true
		return truth{fault: faultDown, rank: n.rank, other: -1}, true
	}}, injection{"started late", func(c *cluster) (truth, bool) {
		n := c.nodes[c.rng.IntN(len(c.nodes))]
		n.gone, c.trigger = true, c.now
		c.after(time.Duration(c.rng.IntN(3000))*time.Millisecond, n.restart)
		return truth{fault: faultLate, rank: n.rank, other: -1}, true
	}})
	return list
}
