package state

import "github.com/zrlmpi/zrlmpid/protocol"

// Kind is what runs at a rank, which decides what its peers must expect.
type Kind string

// The kinds of ranks, as in configuration files.
const (
	// KindFPGA is a deployed FPGA with upstream's Message Passing Engine, or a stand-in for one.
	KindFPGA Kind = "fpga"
	// KindCPU is a program on upstream's C++ library.
	KindCPU Kind = "cpu"
	// KindSoftware is a rank of zrlmpid.
	KindSoftware Kind = "software"
)

// Role is what runs a local rank; empty for a remote one.
type Role string

// The roles of local ranks.
const (
	// RoleHost: a host program attaches to the daemon.
	RoleHost Role = "host"
	// RoleStandin: the daemon runs a kernel in place of an FPGA.
	RoleStandin Role = "standin"
)

// KernelState is the state of a stand-in's kernel; empty for a host.
type KernelState string

// The states of a stand-in's kernel.
const (
	KernelRunning KernelState = "running"
	KernelEnded   KernelState = "ended"
	KernelFailed  KernelState = "failed"
)

// Transport is what carries the packets of a link; empty if that is unknown.
type Transport string

// The transports.
const (
	TransportUDP Transport = "udp"
	TransportTCP Transport = "tcp"
	// TransportSHM is shared memory, between ranks of one host that speak the extended profile.
	TransportSHM Transport = "shm"
)

// Profile is the name of a protocol.Profile, which another version may not know; empty without one.
type Profile string

// ProfileOf returns the name of a profile.
func ProfileOf(p protocol.Profile) Profile { return Profile(p.String()) }

// Datatype is the name of a protocol.Datatype; empty for any.
type Datatype string

// DatatypeOf returns the name of a datatype.
func DatatypeOf(d protocol.Datatype) Datatype { return Datatype(d.String()) }

// CallName is the name of a protocol.Call; empty without one.
type CallName string

// CallOf returns the name of a call.
func CallOf(c protocol.Call) CallName { return CallName(c.String()) }

// Operation is what failed.
type Operation string

// The operations that fail.
const (
	OperationSend       Operation = "send"
	OperationReceive    Operation = "receive"
	OperationCollective Operation = "collective call"
	// OperationConnection: a peer was declared unreachable.
	OperationConnection Operation = "connection"
	// OperationKernel: an exchange of a stand-in's kernel is broken.
	OperationKernel Operation = "kernel"
)
