package handshake

import (
	"encoding/json"
	"testing"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestStateText: names of states and packet types can be parsed, and unknown names give the zero value.
func TestStateText(t *testing.T) {
	type wait struct {
		State State         `json:"state"`
		For   protocol.Type `json:"for,omitempty"`
	}
	for s := Idle; int(s) < len(stateNames); s++ {
		in := wait{s, s.AwaitedPacket()}
		var out wait
		text, err := json.Marshal(in)
		if err == nil {
			err = json.Unmarshal(text, &out)
		}
		if err != nil || in != out {
			t.Errorf("%s: %+v, %v", text, out, err)
		}
	}
	out := wait{WaitAck, protocol.Ack}
	if err := json.Unmarshal([]byte(`{"state":"WAIT_BARRIER","for":"NACK"}`), &out); err != nil || out != (wait{}) {
		t.Errorf("%+v, %v", out, err)
	}
	if text, err := json.Marshal(wait{State: WaitData, For: protocol.Data}); err != nil ||
		string(text) != `{"state":"WAIT_DATA","for":"DATA"}` {
		t.Errorf("%s, %v", text, err)
	}
}
