package state

import (
	"cmp"
	"fmt"
)

// Kernel describes the state of a stand-in's kernel, apart from the counters of the kernel's engine.
type Kernel struct {
	// Errors counts operations that failed, and mistakes that a program made.
	Errors uint64 `json:"errors"`
	// Starts is the number of times that an exec, rtl or rtl-net kernel started its program.
	Starts uint64 `json:"starts,omitempty"`
	// Problem describes why the program of an exec kernel exchanges no messages, or is empty if it exchanges messages.
	Problem string `json:"problem,omitempty"`
	// Failed means that Problem describes a failure, either of the program itself or of its last call.
	Failed bool `json:"failed,omitempty"`
	// Simulation describes the simulated role that an rtl or rtl-net kernel runs. It is nil for other kernels.
	Simulation *Simulation `json:"simulation,omitempty"`
}

// BlockReason describes how the role (a program or a simulation) blocks the exchange of messages, or returns "" if it
// does not.
func (k Kernel) BlockReason() string { return cmp.Or(k.Problem, k.Simulation.BlockReason()) }

// Simulation describes the simulated role that an rtl or rtl-net kernel runs.
type Simulation struct {
	// Cycle is the number of cycles since the simulation was last started.
	Cycle uint64 `json:"cycle"`
	// Signal names the role's hardware signal that blocks the exchange of messages. It has done so since cycle Since.
	// Signal is empty while the exchange waits for the network.
	Signal string `json:"signal,omitempty"`
	Since  uint64 `json:"since_cycle"`
	// Text describes the wait of the exchange.
	Text string `json:"text"`
	// Fault means that the role violated its interface protocol. Afterwards, its rank exchanges no more messages.
	Fault bool `json:"fault,omitempty"`
	// Datagrams counts the datagrams of a simulation that includes an MPE.
	Datagrams *Datagrams `json:"datagrams,omitempty"`
	// TCP counts the chunks and connections of a simulation with TCP streams.
	TCP *TCP `json:"tcp,omitempty"`
}

// TCP counts chunks and connections.
type TCP struct {
	Chunks
	Connections
}

// Connections counts the TCP connections of a role.
type Connections struct {
	// Open is the number of open connections.
	Open int `json:"connections"`
	// Accepted counts connections opened by other ranks, and Opened connections opened by the role.
	Accepted uint64 `json:"accepted"`
	Opened   uint64 `json:"opened"`
	// Unknown counts connections closed because their address belongs to no rank; Limit counts those closed because the
	// shell's limit was reached.
	Unknown uint64 `json:"closed_unknown_address"`
	Limit   uint64 `json:"closed_limit"`
	// Failed counts writes that failed because the role's connection was not open. Dropped counts the bytes of these
	// writes.
	Failed  uint64 `json:"failed"`
	Dropped uint64 `json:"dropped_bytes"`
}

// Datagrams counts datagrams.
type Datagrams struct {
	// Received counts datagrams passed to the role, and Sent datagrams sent by the role.
	Received uint64 `json:"received"`
	Sent     uint64 `json:"sent"`
	// Closed counts datagrams that were dropped because the role had not opened the port. Unknown counts those whose
	// address belongs to no rank, and Length those that were empty or too long.
	Closed  uint64 `json:"dropped_port_closed"`
	Unknown uint64 `json:"dropped_unknown_address"`
	Length  uint64 `json:"dropped_length"`
	// Refused counts datagrams that the role sent to a rank or port that does not exist.
	Refused uint64 `json:"dropped_refused"`
}

// Chunks counts chunks of TCP connections.
type Chunks struct {
	// Received counts chunks of data passed to the role, and Sent chunks sent by the role.
	Received uint64 `json:"received"`
	Sent     uint64 `json:"sent"`
	// Refused counts chunks that the role sent to a rank that does not exist.
	Refused uint64 `json:"dropped_refused"`
}

// BlockReason describes how the role blocks the exchange of messages, or returns "" if it does not.
func (s *Simulation) BlockReason() string {
	if s == nil || s.Signal == "" {
		return ""
	}
	if s.Fault {
		return fmt.Sprintf("%s at cycle %d: %s", s.Signal, s.Since, s.Text)
	}
	return fmt.Sprintf("%s since cycle %d (now %d): %s", s.Signal, s.Since, s.Cycle, s.Text)
}
