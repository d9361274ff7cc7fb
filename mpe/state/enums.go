package state

import "github.com/zrlmpi/zrlmpid/protocol"

// Kind is the kind of software or hardware that implements a rank. Peers adapt to it.
type Kind string

// Kinds of ranks, as in configuration files.
const (
	// KindFPGA is a deployed FPGA with upstream's Message Passing Engine, or a stand-in for such an FPGA.
	KindFPGA Kind = "fpga"
	// KindCPU is a program that uses upstream's C++ library.
	KindCPU Kind = "cpu"
	// KindSoftware is a rank of zrlmpid.
	KindSoftware Kind = "software"
)

// Role is the role that a local rank plays in its daemon. It is empty for a remote rank.
type Role string

// Roles of local ranks.
const (
	// RoleHost means that a host program attaches to the daemon.
	RoleHost Role = "host"
	// RoleStandin means that the daemon runs a kernel in place of an FPGA.
	RoleStandin Role = "standin"
)

// KernelState is the state of the kernel that a stand-in runs. It is empty for a host.
type KernelState string

// States of a stand-in's kernel.
const (
	KernelRunning KernelState = "running"
	KernelEnded   KernelState = "ended"
	KernelFailed  KernelState = "failed"
)

// Transport is the name of a link's transport. It is empty if the transport is unknown.
type Transport string

// Transports.
const (
	TransportUDP Transport = "udp"
	TransportTCP Transport = "tcp"
	// TransportSHM is shared memory between ranks on one host that use the extended profile.
	TransportSHM Transport = "shm"
)

// Profile is the name of a protocol.Profile, or empty. The name may be unknown to this version.
type Profile string

// ProfileOf returns the name of a profile.
func ProfileOf(p protocol.Profile) Profile { return Profile(p.String()) }

// Datatype is the name of a protocol.Datatype. It is empty if any datatype is accepted.
type Datatype string

// DatatypeOf returns the name of a datatype.
func DatatypeOf(d protocol.Datatype) Datatype { return Datatype(d.String()) }

// CallName is the name of a protocol.Call, or empty.
type CallName string

// CallOf returns the name of a call.
func CallOf(c protocol.Call) CallName { return CallName(c.String()) }

// Operation is the kind of operation that failed.
type Operation string

// Kinds of operations that can fail.
const (
	OperationSend       Operation = "send"
	OperationReceive    Operation = "receive"
	OperationCollective Operation = "collective call"
	// OperationConnection means that a peer was declared unreachable.
	OperationConnection Operation = "connection"
	// OperationKernel means that a stand-in's kernel failed to exchange messages.
	OperationKernel Operation = "kernel"
)
