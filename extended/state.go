package extended

import "fmt"

// State is the state of a message.
type State uint8

// States of the package documentation: Queued to Sending for an outbound message, Announced to Cleared for an inbound
// one.
const (
	// Queued: nothing of it was sent.
	Queued State = iota + 1
	// Eager: its DATA was sent, or is being sent, without CLEAR_TO_SEND.
	Eager
	// WaitClear: SEND_REQUEST was sent.
	WaitClear
	// Canceling: ERROR cancel was sent as well.
	Canceling
	// Sending: CLEAR_TO_SEND was received.
	Sending
	// Announced: SEND_REQUEST was received, and no receive has matched.
	Announced
	// Arriving: DATA of an eager message is missing.
	Arriving
	// Cleared: DATA is outstanding after CLEAR_TO_SEND.
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
