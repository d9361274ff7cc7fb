package coll

// Kind says what a step does.
type Kind uint8

const (
	// StepSend sends Len bytes at From to Peer.
	StepSend Kind = iota + 1
	// StepRecv receives Len bytes from Peer into Into.
	StepRecv
	// StepForward receives Len bytes from Peer into Into, and sends them on to To, as
	// soon as Piece bytes more are there. It is the middle of a flow: see Step.Piece.
	StepForward
	// StepCopy copies Len bytes from From to Into.
	StepCopy
	// StepReduce combines: Into = From ∘ Into. So From is of lower ranks, where the
	// order matters, as with the functions of MPI's users (invec, inoutvec).
	StepReduce
	// StepReduceRight is Into = Into ∘ From. From is scratch and holds nothing of use
	// afterwards, so a user's function may leave its result there first.
	StepReduceRight
	// StepJoin does nothing: steps that wait for it wait for all that it waits for.
	StepJoin
	// StepPack copies Count pieces of Len bytes, which begin Stride bytes apart from From on,
	// to Into, one behind the other.
	StepPack
	// StepPublish makes what the rank has written to its shared buffer so far visible to the
	// others. A rank's publications are numbered from 1 in each call.
	StepPublish
	// StepAwait waits until Peer, or each other rank if that is Everyone, has made Count
	// publications in this call.
	StepAwait
)

var kindNames = [...]string{"?", "send", "receive", "forward", "copy", "reduce", "reduce-right", "join", "pack", "publish", "await"}

func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		k = 0
	}
	return kindNames[k]
}

// Buffer names a piece of memory of the rank.
type Buffer uint8

const (
	// SendBuf is the user's send buffer. No step writes to it.
	SendBuf Buffer = iota + 1
	// RecvBuf is the user's receive buffer; in Bcast, the only one.
	RecvBuf
	// Scratch is memory that the executor provides, Schedule.Scratch bytes of it,
	// with whatever content.
	Scratch
	// Blank is the content of messages that have none: the executor sends any
	// bytes, and throws received ones away. Call.Token says how many.
	Blank
	// Shared is memory of a rank that the others of its host can read, Call.Shared bytes of it,
	// with whatever content. A step writes to the rank's own, and reads that of the rank Peer.
	Shared
)

var bufferNames = [...]string{"?", "send buffer", "receive buffer", "scratch", "blank", "shared buffer"}

func (b Buffer) String() string {
	if int(b) >= len(bufferNames) {
		b = 0
	}
	return bufferNames[b]
}

// Loc is a place in a buffer, in bytes from its beginning.
type Loc struct {
	Buf Buffer
	Off int
}

// at is the place off bytes further on.
func (l Loc) at(off int) Loc { return Loc{l.Buf, l.Off + off} }

// Everything in Step.After stands for all steps of lower numbers.
const Everything = -1

// Everyone as the Peer of a StepAwait stands for all ranks but the caller.
const Everyone = -1

// Step is one step of a schedule. Which fields mean something is said at its Kind.
type Step struct {
	Kind Kind
	// Peer and To are ranks.
	Peer, To   int
	From, Into Loc
	// Len and Piece are in bytes. A StepSend or StepRecv with a Piece is an end of a flow
	// that others forward. A flow synchronises itself: every rank announces it to the
	// next as soon as its step begins, and lets the one before send when its receive is
	// posted and it may itself send. So no byte moves before the last rank is ready.
	Len, Piece int
	// Count is of a StepPack and a StepAwait, Stride of a StepPack.
	Count, Stride int
	// After has the numbers of steps that must be complete before this one
	// begins: 0 is none, Everything all earlier ones. It is not used if the schedule is InOrder.
	After [3]int
}

// Sends reports whether the step sends a message, Receives whether it receives one.
func (s *Step) Sends() bool    { return s.Kind == StepSend || s.Kind == StepForward }
func (s *Step) Receives() bool { return s.Kind == StepRecv || s.Kind == StepForward }

// Extents are how many bytes of From and of Into, from there on, a step without a message
// concerns.
func (s *Step) Extents() (from, into int) {
	if s.Kind == StepPack {
		return (s.Count-1)*s.Stride + s.Len, s.Count * s.Len
	}
	return s.Len, s.Len
}

// Pack is what a StepPack does with the bytes of its Extents.
func (s *Step) Pack(into, from []byte) {
	for i := range s.Count {
		copy(into[i*s.Len:(i+1)*s.Len], from[i*s.Stride:])
	}
}

// Dest is the rank that a step which Sends sends to.
func (s *Step) Dest() int {
	if s.Kind == StepForward {
		return s.To
	}
	return s.Peer
}
