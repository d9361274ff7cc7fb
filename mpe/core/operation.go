package core

import (
	"math"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// AnySource in Match.Source and AnyTag in Match.Tag match every source and tag.
const (
	AnySource = -1
	AnyTag    = -1
)

// Match specifies the messages that a receive or probe matches.
type Match struct {
	// Source is a rank of the cluster, or AnySource.
	Source int
	// Tag is 0 to 2³¹−1, or AnyTag.
	Tag int
	// Comm is the communicator's number. Zero is the world, the only communicator of the cloudfpga and v0.9 profiles.
	Comm uint32
	// Claim makes a probe a matched probe, which removes the message that it finds from matching. The message can
	// then be received once: from Status.Peer, in ClaimComm, with the tag Status.Claim.
	Claim bool
}

// ClaimComm is the communicator of claimed messages. This number never appears on the wire.
const ClaimComm = math.MaxUint32

// OpKind is the kind of an Operation.
type OpKind uint8

const (
	// OpSend completes when its buffer may be reused.
	OpSend OpKind = iota + 1
	// OpSendSync completes when its buffer may be reused and a receive has matched the message.
	OpSendSync
	// OpRecv completes when the message is stored in the buffer.
	OpRecv
	// opCollective is a collective call.
	opCollective
)

// Operation is a send or a receive to be posted.
type Operation struct {
	Kind OpKind
	// Peer is the destination of a send, or the source of a receive, which may be AnySource.
	Peer int
	// Tag and Comm are as in Match.
	Tag  int
	Comm uint32
	// Buf is the payload of a send or the buffer of a receive, in bytes.
	Buf []byte
	// Datatype is the type of the message's words on the wire. A receive with AnyDatatype accepts both types. Only
	// deployed nodes distinguish the types.
	Datatype    protocol.Datatype
	AnyDatatype bool
	// Blocking means that the caller is about to wait for this operation and nothing else.
	Blocking bool
	// NoWait means that the posting call must not wait for memory at the peer. If the peer remains full, the operation
	// fails later.
	NoWait bool
}

// PeerInfo describes a rank to a library.
type PeerInfo struct {
	// Profile, Kind and Address are for display.
	Profile, Kind, Address string
	// Words means that messages consist of 32-bit words.
	Words bool
	// NoTags means that the wire carries no tags; messages match in posting order. SmallTags limits tags to 0 to 255.
	NoTags, SmallTags bool
	// NoComms means that all messages belong to the world, communicator 0.
	NoComms bool
	// NoLength means that a probe cannot report the length of a message, which is unknown until it is received.
	NoLength bool
	// NoEmpty means that messages of 0 bytes are refused.
	NoEmpty bool
}

// KeepFunc returns memory that holds the bytes of buf, for a transfer that continues without its caller: buf itself, or
// a copy. The engine calls release when it no longer needs the memory, unless the engine is closed first. Neither
// function may block or call the engine.
type KeepFunc func(buf []byte) (kept []byte, release func())
