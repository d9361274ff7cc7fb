package extended

import "fmt"

// State is where a message stands.
type State uint8

// The states of the package's documentation: of an outbound message Queued to
// Sending, of an inbound one Announced to Clearing.
const (
	// Queued: nothing of it was sent.
	Queued State = iota + 1
	// Eager: its DATA was sent, or is being sent, without being asked for.
	Eager
	// WaitClear: SEND_REQUEST was sent.
	WaitClear
	// Canceling: so was ERROR cancel.
	Canceling
	// Sending: its DATA was asked for.
	Sending
	// Announced: SEND_REQUEST has arrived, and no receive has matched.
	Announced
	// Arriving: DATA of an eager message is missing.
	Arriving
	// Cleared: DATA that was asked for is missing.
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
