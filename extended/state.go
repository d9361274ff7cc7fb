package extended

import "fmt"

// State is the state of a message.
type State uint8

// States in the package documentation. Queued to Sending are states of an outbound message, Announced to Cleared of an
// inbound one.
const (
	// Queued: the message has not begun.
	Queued State = iota + 1
	// Eager: DATA was sent, or is being sent, without waiting for CLEAR_TO_SEND.
	Eager
	// WaitClear: SEND_REQUEST was sent.
	WaitClear
	// Canceling: SEND_REQUEST and ERROR cancel were sent.
	Canceling
	// Sending: CLEAR_TO_SEND was received.
	Sending
	// Announced: SEND_REQUEST was received, and no receive has matched.
	Announced
	// Arriving: an eager message has begun, and its DATA is not complete.
	Arriving
	// Cleared: CLEAR_TO_SEND was sent, and DATA is not complete.
	Cleared
	numStates
)

var stateNames = [numStates]string{
	"", "QUEUED", "EAGER", "WAIT_CLEAR", "WITHDRAWING", "SENDING", "ANNOUNCED", "ARRIVING", "CLEARED",
}

// String returns the state's name.
func (s State) String() string {
	if s > 0 && s < numStates {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}
