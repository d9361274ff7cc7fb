package protocol

import (
	"fmt"
	"slices"
)

// Type is a packet's place in the handshake
// SEND_REQUEST → CLEAR_TO_SEND → DATA → ACK.
type Type uint8

// The packet types of the protocol page. No rank deployed sends ERROR.
const (
	SendRequest Type = 1 + iota
	ClearToSend
	Data
	Ack
	Error
	numTypes
)

var typeNames = [numTypes]string{"", "SEND_REQUEST", "CLEAR_TO_SEND", "DATA", "ACK", "ERROR"}

// String returns the name the protocol page uses.
func (t Type) String() string {
	if t > 0 && t < numTypes {
		return typeNames[t]
	}
	return fmt.Sprintf("type(%d)", uint8(t))
}

// MarshalText returns the name; empty for no type.
func (t Type) MarshalText() ([]byte, error) {
	if t == 0 {
		return nil, nil
	}
	return []byte(t.String()), nil
}

// UnmarshalText reads a name. One that this version does not know is no type.
func (t *Type) UnmarshalText(name []byte) error {
	*t = Type(max(slices.Index(typeNames[:], string(name)), 0))
	return nil
}

// Call is the MPI operation of the rank that sends a packet.
type Call uint8

// The calls of the protocol page. The deployed FPGA ignores BARRIER.
const (
	SendInt Call = iota
	RecvInt
	SendFloat
	RecvFloat
	Barrier
	numCalls
)

var callNames = [numCalls]string{"SEND_INT", "RECV_INT", "SEND_FLOAT", "RECV_FLOAT", "BARRIER"}

// String returns the name the protocol page uses, without its MPI_ prefix.
func (c Call) String() string {
	if c < numCalls {
		return callNames[c]
	}
	return fmt.Sprintf("call(%d)", uint8(c))
}

// IsSend reports whether c is one of the two sends.
func (c Call) IsSend() bool { return c == SendInt || c == SendFloat }

// IsRecv reports whether c is one of the two receives.
func (c Call) IsRecv() bool { return c == RecvInt || c == RecvFloat }

// Counterpart returns the call of the other side of the same message: RECV_INT
// for SEND_INT and so on. BARRIER is its own counterpart.
func (c Call) Counterpart() Call {
	if c < Barrier {
		return c ^ 1 // the sends are even
	}
	return c
}

// Datatype is the type of the words of a message, as far as the wire knows it.
type Datatype uint8

// The two datatypes that the calls distinguish.
const (
	Int Datatype = iota
	Float
)

// Datatype returns the datatype of a send or receive; Int for BARRIER.
func (c Call) Datatype() Datatype {
	if c == SendFloat || c == RecvFloat {
		return Float
	}
	return Int
}

// Send returns the call byte of a send of this datatype.
func (d Datatype) Send() Call {
	if d == Float {
		return SendFloat
	}
	return SendInt
}

// Recv returns the call byte of a receive of this datatype.
func (d Datatype) Recv() Call { return d.Send().Counterpart() }

// String returns "int" or "float", as configuration files and zrlctl spell it.
func (d Datatype) String() string {
	if d == Float {
		return "float"
	}
	return "int"
}

// ParseDatatype is the inverse of Datatype.String.
func ParseDatatype(s string) (Datatype, error) {
	switch s {
	case "int":
		return Int, nil
	case "float":
		return Float, nil
	}
	return 0, fmt.Errorf("unknown datatype %q: it is int or float", s)
}
