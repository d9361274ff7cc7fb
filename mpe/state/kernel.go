package state

import (
	"cmp"
	"fmt"
)

// Kernel counts what a stand-in's kernel has done that its engine does not count.
type Kernel struct {
	// Errors counts failed operations, and a program's mistakes.
	Errors uint64 `json:"errors"`
	// Starts counts how often the program of an exec, rtl or rtl-net kernel was started.
	Starts uint64 `json:"starts,omitempty"`
	// Problem describes why the program of an exec kernel exchanges no messages, or is empty.
	Problem string `json:"problem,omitempty"`
	// Failed: the problem is that the program, or its last call, has failed.
	Failed bool `json:"failed,omitempty"`
	// Simulation is the state of the role of an rtl or rtl-net kernel.
	Simulation *Simulation `json:"simulation,omitempty"`
}

// Holds returns what the role, as a program or in simulation, holds the exchange of messages up with, or an empty
// string.
func (k Kernel) Holds() string { return cmp.Or(k.Problem, k.Simulation.Holds()) }

// Simulation is the state of a role in simulation, of kernels rtl and rtl-net.
type Simulation struct {
	// Cycle is how many cycles the simulation has taken since it was started last.
	Cycle uint64 `json:"cycle"`
	// Signal is the signal of the role that holds the exchange up, since cycle Since. It is
	// empty while that waits for the network.
	Signal string `json:"signal,omitempty"`
	Since  uint64 `json:"since_cycle"`
	// Text describes what the exchange waits for.
	Text string `json:"text"`
	// Fault: the role has broken the rules of its interface, and its rank exchanges nothing more.
	Fault bool `json:"fault,omitempty"`
	// Datagrams counts those of a simulation with an MPE of its own.
	Datagrams *Datagrams `json:"datagrams,omitempty"`
	// TCP counts chunks and connections of one with streams of TCP.
	TCP *TCP `json:"tcp,omitempty"`
}

// TCP counts chunks and connections.
type TCP struct {
	Chunks
	Connections
}

// Connections counts TCP connections of a role.
type Connections struct {
	// Open are those that there are.
	Open int `json:"connections"`
	// Accepted were opened by other ranks, and Opened by the role.
	Accepted uint64 `json:"accepted"`
	Opened   uint64 `json:"opened"`
	// Unknown came from addresses that are no rank's, and Limit while there were as many as the shell has.
	Unknown uint64 `json:"closed_unknown_address"`
	Limit   uint64 `json:"closed_limit"`
	// Failed is how often the role's bytes could not be written, as the connection was not opened or has ended, and Dropped how many
	// they were.
	Failed  uint64 `json:"failed"`
	Dropped uint64 `json:"dropped_bytes"`
}

// Datagrams counts datagrams.
type Datagrams struct {
	// Received were handed to the role, and Sent came from it.
	Received uint64 `json:"received"`
	Sent     uint64 `json:"sent"`
	// Closed arrived while the role had not opened the port, Unknown from addresses that are no rank's, and
	// Length were empty or too long.
	Closed  uint64 `json:"dropped_port_closed"`
	Unknown uint64 `json:"dropped_unknown_address"`
	Length  uint64 `json:"dropped_length"`
	// Refused came from the role for a rank or port that there is not.
	Refused uint64 `json:"dropped_refused"`
}

// Chunks counts chunks of TCP connections.
type Chunks struct {
	// Received were handed to the role, and Sent came from it.
	Received uint64 `json:"received"`
	Sent     uint64 `json:"sent"`
	// Refused came from the role for a rank that there is not.
	Refused uint64 `json:"dropped_refused"`
}

// Holds returns what the role holds the exchange up with, or an empty string.
func (s *Simulation) Holds() string {
	if s == nil || s.Signal == "" {
		return ""
	}
	if s.Fault {
		return fmt.Sprintf("%s at cycle %d: %s", s.Signal, s.Since, s.Text)
	}
	return fmt.Sprintf("%s since cycle %d (now %d): %s", s.Signal, s.Since, s.Cycle, s.Text)
}
