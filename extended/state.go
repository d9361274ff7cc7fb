package extended

import "fmt"

// State is the state of a message.
type State uint8

// These are the states that the package documentation describes. Outbound messages have the states from Queued to
// Sending, and inbound messages those from Announced to Cleared.
const (
	// Queued: the message has not begun.
	Queued State = iota + 1
	// Eager: DATA is being sent or was sent completely, without waiting for CLEAR_TO_SEND.
	Eager
	// WaitClear: SEND_REQUEST was sent.
	WaitClear
	// Canceling: SEND_REQUEST and ERROR cancel were sent.
	Canceling
	// Sending: CLEAR_TO_SEND was received.
	Sending
	// Announced: SEND_REQUEST was received, but no receive has matched the message yet.
	Announced
	// Arriving: an eager message has begun, but not all of its DATA has been received.
	Arriving
	// Cleared: CLEAR_TO_SEND was sent, but not all DATA has been received.
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
