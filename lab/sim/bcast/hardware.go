package bcast

import (
	"github.com/zrlmpi/zrlmpid/lab/sim"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// A message passing engine (MPE) takes one cycle to read a control message and one to compose a reply. The crossbar
// takes one cycle per hop to carry a control message or a word.
const (
	readCycles    sim.Cycle = 1
	composeCycles sim.Cycle = 1
	hopCycles     sim.Cycle = 1
)

// syncCycles is the time that a message takes over one hop, excluding its data: carry and read the request; compose,
// carry and read the ready message; compose, carry and read the complete message. It is m of equation 2 and α of
// equation 1.
const syncCycles = hopCycles + readCycles + composeCycles + hopCycles + readCycles + composeCycles + hopCycles +
	readCycles

// machine is the crossbar and its nodes.
type machine struct {
	clock sim.Clock
	word  int
	nodes []*node
	// ended is the cycle in which the last operation completed.
	ended sim.Cycle
}

// node is the MPE of a node. Its issue queue holds the operations of a schedule. The operations that have begun occupy
// the receive and send ports one at a time, in order.
type node struct {
	machine  *machine
	schedule coll.Schedule
	progress coll.Progress
	in, out  sim.FIFO[*operation]
}

// operation is a Send, a Recv or a Fwd: the head, the tail or a node of the body of a path.
type operation struct {
	node   *node
	number int
	step   coll.Step
	// up and down are the previous and the next operation on the path.
	up, down *operation
	// requested reports whether the request of the previous node was received.
	requested bool
	// words is the number of words that left the head or reached another node of the path.
	words int
}

// issue starts all operations that may begin now.
func (n *node) issue() {
	for {
		step, number, ok := n.progress.Next()
		if !ok {
			return
		}
		o := &operation{node: n, number: number, step: *step}
		if o.step.Sends() {
			n.out.Push(o)
		}
		if o.step.Receives() {
			n.in.Push(o)
		}
		n.request()
		n.accept()
	}
}

// request sends the request of the operation that holds the output port to the next node if that node is now receiving
// from n. A Fwd passes its request on only after it has received one, so the path is reserved from head to tail.
func (n *node) request() {
	if n.out.Len() == 0 {
		return
	}
	o := n.out.Head()
	next := n.machine.nodes[o.step.Dest()]
	if o.down != nil || o.step.Receives() && !o.requested || next.in.Len() == 0 {
		return
	}
	to := next.in.Head()
	if n.machine.nodes[to.step.Peer] != n {
		return
	}
	o.down, to.up = to, o
	n.machine.clock.After(hopCycles, to.onRequest)
}

// accept retries the request of the node from which the input port expects data.
func (n *node) accept() {
	if n.in.Len() > 0 {
		n.machine.nodes[n.in.Head().step.Peer].request()
	}
}

func (o *operation) onRequest() {
	o.requested = true
	if o.step.Sends() {
		o.node.request()
		return
	}
	o.node.machine.clock.After(readCycles+composeCycles+hopCycles, o.head().onReady)
}

// head returns the first operation of the path. The whole path is reserved, so control messages cross its body within
// the cycle in which they are sent.
func (o *operation) head() *operation {
	for o.up != nil {
		o = o.up
	}
	return o
}

func (o *operation) onReady() { o.node.machine.clock.After(readCycles, o.sendWord) }

// sendWord sends the head's data, one word per cycle.
func (o *operation) sendWord() {
	clock := &o.node.machine.clock
	clock.After(hopCycles, o.down.onWord)
	if o.words++; o.words < o.total() {
		clock.After(1, o.sendWord)
	}
}

// onWord stores a word and forwards it in the next cycle.
func (o *operation) onWord() {
	clock := &o.node.machine.clock
	o.words++
	switch {
	case o.step.Sends():
		clock.After(hopCycles, o.down.onWord)
	case o.words == o.total():
		clock.After(composeCycles+hopCycles, o.onComplete)
	}
}

// onComplete ends all operations of the path with tail o. The head first reads the message.
func (o *operation) onComplete() {
	for o.up != nil {
		up := o.up
		o.end()
		o = up
	}
	o.node.machine.clock.After(readCycles, o.end)
}

// end releases the ports to the next operations.
func (o *operation) end() {
	n := o.node
	if o.step.Sends() {
		n.out.Pop()
	}
	if o.step.Receives() {
		n.in.Pop()
	}
	n.machine.ended = n.machine.clock.Now()
	n.progress.Done(o.number)
	n.issue()
	n.request()
	n.accept()
}

// total returns the number of words that the operation moves.
func (o *operation) total() int { return words(o.step.Len, o.node.machine.word) }

func words(bytes, word int) int { return (bytes + word - 1) / word }
