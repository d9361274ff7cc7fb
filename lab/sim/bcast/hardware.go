package bcast

import (
	"github.com/zrlmpi/zrlmpid/lab/sim"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// A message passing engine (MPE) takes one cycle to read a control message, and one cycle to compose a reply. The
// crossbar takes one cycle to carry a control message or a word over a hop.
const (
	readCycles    sim.Cycle = 1
	composeCycles sim.Cycle = 1
	hopCycles     sim.Cycle = 1
)

// syncCycles is the time that a message takes over one hop in addition to the time of its data: to carry and read the
// request; to compose, carry and read the ready message; and to compose, carry and read the complete message. Equation
// 2 calls it m, and equation 1 α.
const syncCycles = hopCycles + readCycles + composeCycles + hopCycles + readCycles + composeCycles + hopCycles +
	readCycles

// machine models the crossbar and the nodes that it connects.
type machine struct {
	clock sim.Clock
	word  int
	nodes []*node
	// endCycle is the cycle in which the last operation was completed.
	endCycle sim.Cycle
}

// node models the MPE of a node. Its issue queue holds the operations of a schedule. Operations that have begun use the
// receive port and the send port one at a time, in order.
type node struct {
	machine  *machine
	schedule coll.Schedule
	progress coll.Progress
	in, out  sim.FIFO[*operation]
}

// operation is one node's part in a transfer along a path of nodes: a Send at the head of the path, a Fwd in the
// middle, or a Recv at its tail.
type operation struct {
	node   *node
	number int
	step   coll.Step
	// prev and next are the neighbouring operations on the path.
	prev, next *operation
	// requested reports whether the request from the previous node has been received.
	requested bool
	// words is the number of words that the head has sent or, at any other node, that the node has received.
	words int
}

// issue starts all operations of the node that can begin now.
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

// request sends a request to the next node on the path, provided that node is receiving from n. The request is for the
// operation that holds the output port. A Fwd passes a request on only after it has received one, so the path is
// reserved from head to tail.
func (n *node) request() {
	if n.out.Len() == 0 {
		return
	}
	op := n.out.Head()
	next := n.machine.nodes[op.step.Dest()]
	if op.next != nil || op.step.Receives() && !op.requested || next.in.Len() == 0 {
		return
	}
	to := next.in.Head()
	if n.machine.nodes[to.step.Peer] != n {
		return
	}
	op.next, to.prev = to, op
	n.machine.clock.After(hopCycles, to.onRequest)
}

// accept retries the request of the node whose data the input port expects.
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
	o.node.machine.clock.After(readCycles+composeCycles+hopCycles, o.pathHead().onReady)
}

// pathHead returns the operation at the head of the path. When it is called, the whole path is reserved, so control
// messages cross it in the cycle in which they are sent.
func (o *operation) pathHead() *operation {
	for o.prev != nil {
		o = o.prev
	}
	return o
}

func (o *operation) onReady() { o.node.machine.clock.After(readCycles, o.sendWord) }

// sendWord sends the next word of the data from the head. It sends one word per cycle.
func (o *operation) sendWord() {
	clock := &o.node.machine.clock
	clock.After(hopCycles, o.next.onWord)
	if o.words++; o.words < o.totalWords() {
		clock.After(1, o.sendWord)
	}
}

// onWord stores a word received by the node, and forwards it to the next node in the next cycle.
func (o *operation) onWord() {
	clock := &o.node.machine.clock
	o.words++
	switch {
	case o.step.Sends():
		clock.After(hopCycles, o.next.onWord)
	case o.words == o.totalWords():
		clock.After(composeCycles+hopCycles, o.onComplete)
	}
}

// onComplete ends all operations on the path whose tail is o. The head's operation ends last, once the head has read
// the complete message.
func (o *operation) onComplete() {
	for o.prev != nil {
		up := o.prev
		o.finish()
		o = up
	}
	o.node.machine.clock.After(readCycles, o.finish)
}

// finish releases the ports, so that the next operations can use them.
func (o *operation) finish() {
	n := o.node
	if o.step.Sends() {
		n.out.Pop()
	}
	if o.step.Receives() {
		n.in.Pop()
	}
	n.machine.endCycle = n.machine.clock.Now()
	n.progress.MarkDone(o.number)
	n.issue()
	n.request()
	n.accept()
}

// totalWords returns the number of words that the operation moves.
func (o *operation) totalWords() int { return numWords(o.step.Len, o.node.machine.word) }

func numWords(bytes, word int) int { return (bytes + word - 1) / word }
