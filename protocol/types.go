package protocol

import (
	"fmt"
	"slices"
)

// Type is the type of a packet. The handshake for a message is SEND_REQUEST → CLEAR_TO_SEND → DATA → ACK.
type Type uint8

// These are the packet types that the protocol page defines. No deployed rank sends ERROR.
const (
	SendRequest Type = 1 + iota
	ClearToSend
	Data
	Ack
	Error
	numTypes
)

var typeNames = [numTypes]string{"", "SEND_REQUEST", "CLEAR_TO_SEND", "DATA", "ACK", "ERROR"}

// String returns the name that the protocol page uses for the type.
func (t Type) String() string {
	if t > 0 && t < numTypes {
		return typeNames[t]
	}
	return fmt.Sprintf("type(%d)", uint8(t))
}

// MarshalText returns the name of the type, or an empty text for the zero Type.
func (t Type) MarshalText() ([]byte, error) {
	if t == 0 {
		return nil, nil
	}
	return []byte(t.String()), nil
}

// UnmarshalText sets t to the type with the given name, or to 0 if this version does not know the name.
func (t *Type) UnmarshalText(name []byte) error {
	*t = Type(max(slices.Index(typeNames[:], string(name)), 0))
	return nil
}

// Call is the MPI operation that the sender of a packet is executing.
type Call uint8

// These are the calls that the protocol page defines. The deployed FPGA ignores BARRIER.
const (
	SendInt Call = iota
	RecvInt
	SendFloat
	RecvFloat
	Barrier
	numCalls
)

var callNames = [numCalls]string{"SEND_INT", "RECV_INT", "SEND_FLOAT", "RECV_FLOAT", "BARRIER"}

// String returns the name that the protocol page uses for the call, without the prefix MPI_.
func (c Call) String() string {
	if c < numCalls {
		return callNames[c]
	}
	return fmt.Sprintf("call(%d)", uint8(c))
}

// IsSend reports whether c is SEND_INT or SEND_FLOAT.
func (c Call) IsSend() bool { return c == SendInt || c == SendFloat }

// IsRecv reports whether c is RECV_INT or RECV_FLOAT.
func (c Call) IsRecv() bool { return c == RecvInt || c == RecvFloat }

// Counterpart returns the call that the other rank uses for the same message: RECV_INT for SEND_INT, and so on. BARRIER
// is its own counterpart.
func (c Call) Counterpart() Call {
	if c < Barrier {
		return c ^ 1 // sends are even
	}
	return c
}

// Datatype is the type of the words of a message, as far as the wire distinguishes it.
type Datatype uint8

// Datatypes that the calls distinguish.
const (
	Int Datatype = iota
	Float
)

// Datatype returns the datatype of the words that a send or receive transfers. For BARRIER, it returns Int.
func (c Call) Datatype() Datatype {
	if c == SendFloat || c == RecvFloat {
		return Float
	}
	return Int
}

// SendCall returns the send call for this datatype.
func (d Datatype) SendCall() Call {
	if d == Float {
		return SendFloat
	}
	return SendInt
}

// RecvCall returns the receive call for this datatype.
func (d Datatype) RecvCall() Call { return d.SendCall().Counterpart() }

// String returns "int" or "float", as configuration files and zrlctl spell the datatype.
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
