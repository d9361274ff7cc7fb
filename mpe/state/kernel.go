package state

import (
	"cmp"
	"fmt"
)

// Kernel has the counters of a stand-in's kernel that its engine does not have.
type Kernel struct {
	// Errors counts failed operations and mistakes of a program.
	Errors uint64 `json:"errors"`
	// Starts counts starts of the program of an exec, rtl or rtl-net kernel.
	Starts uint64 `json:"starts,omitempty"`
	// Problem describes why the program of an exec kernel exchanges no messages; empty if it does.
	Problem string `json:"problem,omitempty"`
	// Simulation is the state of the role of an rtl or rtl-net kernel.
	Simulation *Simulation `json:"simulation,omitempty"`
}

// Holds describes how the role, a program or a simulation, blocks the exchange of messages. It is empty if
// the role does not.
func (k Kernel) Holds() string { return cmp.Or(k.Problem, k.Simulation.Holds()) }

// Simulation is the state of a simulated role, of kernels rtl and rtl-net.
type Simulation struct {
	// Cycle is the number of cycles since the simulation was last started.
	Cycle uint64 `json:"cycle"`
	// Signal is the signal of the role that has blocked the exchange since cycle Since. It is empty while the
	// exchange waits for the network.
	Signal string `json:"signal,omitempty"`
	Since  uint64 `json:"since_cycle"`
	// Text describes the wait of the exchange.
	Text string `json:"text"`
	// Fault means that the role has violated the protocol of its interface, and that its rank exchanges
	// nothing more.
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
	// Accepted counts connections opened by other ranks, and Opened those opened by the role.
	Accepted uint64 `json:"accepted"`
	Opened   uint64 `json:"opened"`
	// Unknown counts connections closed because their address belongs to no rank, and Limit those closed at
	// the shell's limit.
	Unknown uint64 `json:"closed_unknown_address"`
	Limit   uint64 `json:"closed_limit"`
	// Failed counts writes of the role that failed because the connection was not opened or is closed.
	// Dropped is their number of bytes.
	Failed  uint64 `json:"failed"`
	Dropped uint64 `json:"dropped_bytes"`
}

// Datagrams counts datagrams.
type Datagrams struct {
	// Received were passed to the role, and Sent were sent by it.
	Received uint64 `json:"received"`
	Sent     uint64 `json:"sent"`
	// Closed were dropped because the role had not opened the port, Unknown because their address belongs to
	// no rank, and Length because they were empty or too long.
	Closed  uint64 `json:"dropped_port_closed"`
	Unknown uint64 `json:"dropped_unknown_address"`
	Length  uint64 `json:"dropped_length"`
	// Refused were sent by the role to a rank or port that does not exist.
	Refused uint64 `json:"dropped_refused"`
}

// Chunks counts chunks of TCP connections.
type Chunks struct {
	// Received were passed to the role, and Sent were sent by it.
	Received uint64 `json:"received"`
	Sent     uint64 `json:"sent"`
	// Refused were sent by the role to a rank that does not exist.
	Refused uint64 `json:"dropped_refused"`
}

// Holds describes how the role blocks the exchange, or is empty.
func (s *Simulation) Holds() string {
	if s == nil || s.Signal == "" {
		return ""
	}
	if s.Fault {
		return fmt.Sprintf("%s at cycle %d: %s", s.Signal, s.Since, s.Text)
	}
	return fmt.Sprintf("%s since cycle %d (now %d): %s", s.Signal, s.Since, s.Cycle, s.Text)
}
