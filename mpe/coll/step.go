package coll

// Kind is the kind of a step.
type Kind uint8

const (
	// StepSend sends Len bytes at From to Peer.
	StepSend Kind = iota + 1
	// StepRecv receives Len bytes from Peer into Into.
	StepRecv
	// StepForward receives Len bytes from Peer into Into, and forwards them to To while they arrive, in pieces of Piece
	// bytes. It is the step of a middle rank in a flow; see Step.Piece.
	StepForward
	// StepCopy copies Len bytes from From to Into.
	StepCopy
	// StepReduce sets Into = From ∘ With, or Into = From ∘ Into if With is not set. If the order of operands matters, From
	// is therefore the contribution of lower ranks, as in the reduction functions of MPI users (invec, inoutvec).
	StepReduce
	// StepReduceRight sets Into = Into ∘ From. From must be scratch, and its content is undefined afterwards, because a
	// user function stores its result there first.
	StepReduceRight
	// StepJoin is a no-op that merges dependencies: a step that waits for it waits for all steps in its After.
	StepJoin
	// StepPack copies Count pieces of Len bytes to Into, without gaps. The first piece begins at From, and each
	// following piece begins Stride bytes after the one before it.
	StepPack
	// StepPublish makes all earlier writes of the rank to its shared buffer visible to the other ranks. A rank's
	// publications are numbered from 1 in each call.
	StepPublish
	// StepAwait waits until Peer, or every other rank if Peer is AllRanks, has made Count publications in this call.
	StepAwait
)

var kindNames = [...]string{"?", "send", "receive", "forward", "copy", "reduce", "reduce-right", "join", "pack",
	"publish", "await"}

func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		k = 0
	}
	return kindNames[k]
}

// Buffer names a buffer of the rank.
type Buffer uint8

const (
	// SendBuf is the user's send buffer. No step writes to it.
	SendBuf Buffer = iota + 1
	// RecvBuf is the user's receive buffer. In Bcast, it is the only buffer.
	RecvBuf
	// Scratch is memory of the executor: Schedule.Scratch bytes with undefined initial content.
	Scratch
	// Blank is the buffer of messages without content. Such a message is Call.Token bytes long; the executor sends
	// arbitrary bytes, and discards received bytes.
	Blank
	// Shared is memory of a rank that the other ranks on its host can read: Call.Shared bytes with undefined initial
	// content. A step writes to the rank's own buffer, and reads From or With in the buffer of rank Peer.
	Shared
)

var bufferNames = [...]string{"?", "send buffer", "receive buffer", "scratch", "blank", "shared buffer"}

func (b Buffer) String() string {
	if int(b) >= len(bufferNames) {
		b = 0
	}
	return bufferNames[b]
}

// Loc is a location in a buffer. Off is in bytes.
type Loc struct {
	Buf Buffer
	Off int
}

// offset returns the location that lies off bytes further on.
func (l Loc) offset(off int) Loc { return Loc{l.Buf, l.Off + off} }

// AllEarlier in Step.After means all steps with lower numbers.
const AllEarlier = -1

// AllRanks as the Peer of a StepAwait means all ranks except the caller.
const AllRanks = -1

// Step is one step of a schedule. Its Kind determines which fields are used.
type Step struct {
	Kind Kind
	// Peer and To are ranks.
	Peer, To   int
	From, Into Loc
	// With is set only in steps that read a shared buffer.
	With Loc
	// Len and Piece are in bytes. A StepSend or StepRecv with a Piece is the first or last step of a flow, which other
	// ranks forward. A flow synchronizes itself: each rank announces it to the next rank as soon as its step begins,
	// and clears the previous rank to send when its own receive is posted and the next rank has cleared it. Therefore
	// no byte is sent before the last rank is ready.
	Len, Piece int
	// Count is used by StepPack and StepAwait, Stride only by StepPack.
	Count, Stride int
	// After lists the numbers of the steps that must be complete before this step begins. 0 means no step, and
	// AllEarlier all earlier steps. InOrder schedules ignore After.
	After [3]int
}

// Sends reports whether the step sends a message, and Receives whether it receives one.
func (s *Step) Sends() bool    { return s.Kind == StepSend || s.Kind == StepForward }
func (s *Step) Receives() bool { return s.Kind == StepRecv || s.Kind == StepForward }

// Extents returns the number of bytes that a step without messages reads at From, and the number that it writes at
// Into.
func (s *Step) Extents() (from, into int) {
	if s.Kind == StepPack {
		return (s.Count-1)*s.Stride + s.Len, s.Count * s.Len
	}
	return s.Len, s.Len
}

// Pack executes a StepPack on the bytes of its Extents.
func (s *Step) Pack(into, from []byte) {
	for i := range s.Count {
		copy(into[i*s.Len:(i+1)*s.Len], from[i*s.Stride:])
	}
}

// Dest returns the destination of a step for which Sends returns true.
func (s *Step) Dest() int {
	if s.Kind == StepForward {
		return s.To
	}
	return s.Peer
}
