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

// Match is what a receive is matched by.
type Match struct {
	// Source is a rank of the cluster, or AnySource.
	Source int
	// Tag is 0 to 2³¹−1, or AnyTag.
	Tag int
	// Comm is the communicator's number. 0 is the world, the only one that
	// the cloudfpga and v0.9 profiles know.
	Comm uint32
	// Claim has a probe take the message out of the matching (a matched probe): Status.Claim of it is the tag of the one receive
	// that gets it, from the status's peer in ClaimComm.
	Claim bool
}

// ClaimComm is the number of a communicator that has the messages that probes have claimed. No message bears it.
const ClaimComm = math.MaxUint32

// OpKind says what an Operation does.
type OpKind uint8

const (
	// OpSend completes when the buffer may be used again.
	OpSend OpKind = iota + 1
	// OpSendSync completes when a receive has matched, too.
	OpSendSync
	// OpRecv completes when the message is in the buffer.
	OpRecv
	// opCollective is a collective call.
	opCollective
)

// Operation is a send or a receive to be posted.
type Operation struct {
	Kind OpKind
	// Peer is the destination of a send; the source of a receive, or
	// AnySource.
	Peer int
	// Tag and Comm are as in Match.
	Tag  int
	Comm uint32
	// Buf is the payload of a send or the buffer of a receive, in bytes.
	Buf []byte
	// Datatype is what the wire calls the words of a message. A receive with
	// AnyDatatype takes both. Only deployed nodes distinguish them.
	Datatype    protocol.Datatype
	AnyDatatype bool
	// Blocking: the caller is about to wait for it and for nothing else.
	Blocking bool
	// NoWait: its caller cannot wait in the call for room at the peer, of which it needs some to be sent. It fails
	// later if there is none.
	NoWait bool
}

// PeerInfo describes a rank to a library.
type PeerInfo struct {
	// Profile, Kind and Address are as people know them.
	Profile, Kind, Address string
	// Words: messages are whole numbers of 32-bit words.
	Words bool
	// NoTags: tags do not travel; messages match in the order in which they
	// were posted. SmallTags: tags are 0 to 255.
	NoTags, SmallTags bool
	// NoComms: messages belong to the world, communicator 0.
	NoComms bool
	// NoLength: the length of a message is not known until it is received,
	// so that a probe cannot report it.
	NoLength bool
	// NoEmpty: messages of 0 bytes are refused.
	NoEmpty bool
}

// Keep returns memory for a transfer that goes on without its caller, with the bytes of buf:
// buf itself, or a copy. Release is called when the engine needs the memory no longer. Neither may
// call the engine, or wait. An engine that is closed meanwhile does not call release.
type Keep func(buf []byte) (kept []byte, release func())
