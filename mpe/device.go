package mpe

import (
	"context"
	"math"

	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Device is what a message passing library needs of a rank: non-blocking
// operations on bytes, matched by source, tag and communicator. An Engine is
// one, and so is a client that is attached to a daemon's. Its methods may be
// called from any number of goroutines.
type Device interface {
	// Rank and Size are those of the whole cluster.
	Rank() int
	Size() int
	// Peer describes another rank, or this one.
	Peer(rank int) (PeerInfo, error)
	// Start posts a send or a receive. The buffer belongs to the device until
	// the operation has ended.
	Start(op Operation) (Op, error)
	// StartCollective posts a collective call. See collective.Operation.
	StartCollective(c *collective.Operation) (Op, error)
	// Probe finds a message that a receive with these would get, without
	// receiving it. It waits for one until ctx ends, if wait is set.
	Probe(ctx context.Context, m Match, wait bool) (Status, bool, error)
	// Await waits for a value on c, from Op.Notify, or for ctx, whose cause it
	// returns. Meanwhile it carries messages, as Op.Wait does.
	Await(ctx context.Context, c <-chan struct{}) error
	// Close ends the device's operations and gives the rank back.
	Close(ctx context.Context) error
}

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

// Op is a posted operation. One goroutine at a time may wait for it.
type Op interface {
	// Wait waits for the operation to end. When ctx ends first, the operation
	// is cancelled, its buffer is the caller's again, and the error is a
	// *WaitError.
	Wait(ctx context.Context) (Status, error)
	// Test reports whether the operation has ended, and how.
	Test() (Status, bool, error)
	// Cancel asks for the operation to be cancelled. It ends in any case as
	// far as Wait is concerned: with ErrCancelled if that succeeded, and as if
	// nothing had been asked if it was too late.
	Cancel()
	// Notify arranges for a value to be sent to c, without waiting for room,
	// when the operation ends; at once if it has. Notify(nil) revokes it.
	Notify(c chan<- struct{})
	// Free gives the device the memory of an operation that has ended, so that
	// another one can have it. The operation must not be used afterwards, by
	// anyone. An operation that is not freed is left to the garbage collector.
	Free()
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
