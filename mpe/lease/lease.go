// Package lease defines the memory through which an engine leases part of its work to C code in the same process: the
// Block. While a Block is leased, C code sends and receives short messages, and executes short collective calls,
// through the memory that the rank shares with its peers. The engine revokes the lease before it does anything else,
// and then replays the log of what C code has done, so that its state is the same as if it had done everything itself.
//
// The types have the same layout in C: a test of lib/gen translates them. Addresses are uint64s. Package mpe leases
// Blocks and revokes leases.
package lease

import (
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
)

// The sizes of the tables in a Block. A communicator, peer or call that does not fit is left to the engine.
const (
	MaxComms = 4
	// MaxRanks is the maximum number of ranks in a communicator, and MaxMembers in one with collective calls.
	MaxRanks, MaxMembers = 64, 8
	// MaxPeers is the maximum number of peers that a program exchanges messages with.
	MaxPeers = 16
	// MaxShapes is a power of two.
	MaxShapes = 32
	// MaxEvents is the maximum number of messages and calls for which a Block can be leased. It bounds the time that the
	// engine needs to replay them, and how late it acknowledges messages.
	MaxEvents = 64
	// MaxPayload is the maximum length, in bytes, of a message, of a vector, and of a block of a rank.
	MaxPayload = 1024
	// AckEvery is the number of packets after which the engine acknowledges them (E26). C code leaves that to it.
	AckEvery = 64
	// CountBits is the width of the lower part of a slot's sequence (package mpe/collective).
	CountBits = 24
	// MaxTypes is the number of entries in Block.Types. No two of an ABI's basic datatypes have handles that are equal
	// modulo MaxTypes.
	MaxTypes = 1024
)

// States of a Block.
const (
	// Kept: the engine uses the Block.
	Kept uint32 = iota
	// Leased: C code may use the Block, by changing its state to Busy.
	Leased
	// Busy: C code uses the Block.
	Busy
)

// Block is the memory that an engine leases. Only the owner reads or writes it, except for State and Recall.
type Block struct {
	// State is the state of the Block. Recall is set while the engine waits for the Block: C code must not wait then.
	// Both must be accessed atomically.
	State, Recall uint32
	// Polls is the number of times that C code polls for an event before it leaves the wait to the engine.
	Polls uint32
	// Stamps is set if C code must store the times of events, on the processor's clock.
	Stamps uint32
	// Calls counts the calls that C code has completed.
	Calls uint64
	// Events is the number of entries in Log, in the order in which they happened. PayloadLen is the number of bytes
	// used in Payload.
	Events, PayloadLen uint32
	Comms              [MaxComms]Comm
	Peers              [MaxPeers]Peer
	Shapes             [MaxShapes]Shape
	Log                [MaxEvents]Event
	Payload            [MaxEvents * MaxPayload]byte
	// Types holds the basic datatypes, each at the index Handle modulo MaxTypes.
	Types [MaxTypes]Type
}

// Type is a datatype whose elements have no gaps.
type Type struct {
	Handle uint64
	// Size is the size of an element in bytes. Wire is the datatype on the wire.
	Size, Wire uint32
}

// Comm is a communicator.
type Comm struct {
	// Handle identifies the communicator in C. It is 0 in an unused entry.
	Handle uint64
	// Sequence is the address of the uint32 number of the communicator's last collective call.
	Sequence uint64
	// Number is the communicator's number in messages. MayRecv is set if no receive is posted and no message waits in
	// it, and Shares is set if Sharing is leased.
	Number, MayRecv, Shares uint32
	Rank, Ranks             uint32
	// Peers holds, for each rank, the index of its entry in Block.Peers plus 1, or 0.
	Peers   [MaxRanks]uint8
	Sharing Sharing
}

// Peer is a peer that shares memory with the rank.
type Peer struct {
	// IsLeased is set if C code may use the other fields. Used is set if C code has done so.
	IsLeased, Used uint32
	// Keeps is set if the log must keep the payload of received messages.
	Keeps uint32
	Sends Sends
	Recvs Recvs
	Link  Link
}

// Sends is the sending half of the protocol. Digest, Number and Message are fields of the next
// packet's short header. Packets and Bytes limit what may be sent.
type Sends struct {
	Digest, Number, Message uint32
	Packets, Bytes          uint32
}

// Recvs is the receiving half of the protocol: the digest, number and message of the next packet, and limits for what
// may be received. Unacked is the number of packets received since the last packet was sent.
type Recvs struct {
	Digest, Number, Message uint32
	Packets, Bytes          uint32
	Unacked                 uint32
}

// Link is the memory shared with a peer: a ring in each direction, as package transport/shm defines it.
type Link struct {
	// Out and In are the addresses of the rings, and Size is the size of each in bytes.
	Out, In, Size uint64
	// OutHead and InHead are the addresses of the words in which the reader publishes its position.
	OutHead, InHead uint64
	// The other positions have the same meaning as in package shm.
	OutPos, OutReadHead, OutCleared uint64
	InPos, InPublished              uint64
	Doorbell                        Doorbell
}

// Doorbell wakes a peer: the address of the flag that the peer sleeps, and the descriptor to write to.
type Doorbell struct {
	Flag       uint64
	Descriptor int64
}

// Sharing is the state of a communicator whose members share buffers, as package mpe/collective defines it.
type Sharing struct {
	// Self is the index of this rank, and Members the number of members.
	Self, Members uint32
	// Used is set if C code has made a call.
	Used uint32
	// LastTag is the number of the last call.
	LastTag uint32
	// Posted is the number of calls made on shared buffers. Digests and Descriptions are the ones that this rank last
	// published in each half.
	Epoch, Posted         uint64
	Digests, Descriptions [2]uint64
	// Half is the size of a half in bytes. States and Slots hold, for each member, the addresses of the words of its
	// slot, and of the slot's memory.
	Half      uint64
	LastSeen  [MaxMembers]uint64
	States    [MaxMembers]uint64
	Slots     [MaxMembers]uint64
	Doorbells [MaxMembers]Doorbell
}

// Shape is a collective call that the engine has executed before by the algorithm that C code knows.
type Shape struct {
	// The arguments of the call identify the shape. Call is 0 in an unused entry.
	Comm, Type, Op uint64
	Count          int64
	Call, Root     uint32
	// Bytes is the length of the vector, or of one rank's block. Elem is the type of the elements of a reduction, and
	// Reduction the operation.
	Bytes, Elem, Reduction uint32
	// Digest is the lower half of the call's digest. Description is the word that its members compare.
	Digest      uint32
	Description uint64
}

// Index returns the shape's index in Block.Shapes.
func (s *Shape) Index() uint32 {
	h := s.Comm ^ s.Type<<3 ^ s.Op<<5 ^ uint64(s.Count) ^ uint64(s.Call)<<2 ^ uint64(s.Root)
	return uint32(h^h>>7) % MaxShapes
}

// Collective calls in Shape.Call.
const (
	Barrier uint32 = iota + 1
	Bcast
	Reduce
	Allreduce
	Allgather
	Alltoall
)

// Operations and Elements list the reductions of C code.
var (
	Operations = []op.Op{op.Sum, op.Prod, op.Max, op.Min, op.LAnd, op.LOr, op.BAnd, op.BOr, op.BXor}
	Elements   = []op.Type{op.Int32, op.Int64, op.Uint32, op.Uint64, op.Float32, op.Float64}
)

// CanReduce reports whether C code can combine elements by an operation. The engine must support both.
func CanReduce(o op.Op, t op.Type) bool {
	return slices.Contains(Operations, o) && slices.Contains(Elements, t)
}

// Event is an entry in the log: a message that C code has sent or received, or a collective call that it has made.
type Event struct {
	Kind uint32
	// Peer is the index of the peer or, for a call, of the communicator. Shape is the index of the call's shape.
	Peer, Shape uint32
	// Comm, Tag, Wire, Length and Acknowledged describe the message. For a call, Tag is its number.
	Comm, Tag, Wire, Length, Acknowledged uint32
	// Payload is the offset of the message's payload in Block.Payload, if it is kept there.
	Payload uint32
	// Began and Ended are times on the processor's clock, if Block.Stamps is set. Began is for calls only.
	Began, Ended uint64
}

// Kinds of events.
const (
	Sent uint32 = iota + 1
	Received
	Called
)
