package state

import "testing"

// TestFailureWhat checks that a failure names its peer if it has one.
func TestFailureWhat(t *testing.T) {
	two := 2
	for _, tt := range []struct {
		operation Operation
		peer      *int
		state     string
		want      string
	}{
		{OperationSend, &two, "", "send to rank 2"},
		{OperationSend, &two, "WAIT_CLEAR", "send to rank 2, WAIT_CLEAR"},
		{OperationSend, nil, "", "send"},
		{OperationReceive, &two, "", "receive from rank 2"},
		{OperationReceive, nil, "WAIT_REQUEST", "receive from any rank, WAIT_REQUEST"},
		{"Bcast", nil, "", "Bcast"},
	} {
		f := Failure{Operation: tt.operation, Peer: tt.peer, State: tt.state}
		if got := f.What(); got != tt.want {
			t.Errorf("%q, not %q", got, tt.want)
		}
	}
}
