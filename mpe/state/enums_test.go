package state

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestReasonText checks that reasons are names in JSON, and that an unknown reason from another version equals no
// reason of this version.
func TestReasonText(t *testing.T) {
	for r := range DropReason(NumDropReasons) {
		text, err := json.Marshal(Drop{Reason: r})
		var back Drop
		if err == nil {
			err = json.Unmarshal(text, &back)
		}
		if err != nil || back.Reason != r || !strings.Contains(string(text), `"reason":"`+dropNames[r]+`"`) {
			t.Errorf("%v: %s, %v, %v", r, text, back.Reason, err)
		}
	}
	var later Drop
	if err := json.Unmarshal([]byte(`{"reason":"later"}`), &later); err != nil || int(later.Reason) != NumDropReasons {
		t.Errorf("%v, %v", later.Reason, err)
	}
}

// TestNames checks that profiles, datatypes and calls have the names of package protocol.
func TestNames(t *testing.T) {
	p, d, c := ProfileOf(protocol.V09), DatatypeOf(protocol.Float), CallOf(protocol.RecvFloat)
	if p != "v0.9" || d != "float" || c != "RECV_FLOAT" {
		t.Errorf("%s, %s, %s", p, d, c)
	}
}

// TestDescribe checks that the description of an engine's state is complete.
func TestDescribe(t *testing.T) {
	wait := func(rank uint32) *Wait {
		return &Wait{Facts: &WaitFacts{Unacknowledged: true, Pending: Pending{Wait: handshake.Wait{Remote: rank}}}}
	}
	e := Engine{AnySource: wait(1), Peers: []Peer{
		{Rank: 2, Sending: wait(2), Unfinished: UnfinishedSend}, {Rank: 3, Receiving: wait(3), Unfinished: UnfinishedRecv},
		{Rank: 4, Unfinished: UnfinishedNext}, {Rank: 5},
	}}
	e.Describe()
	for i, text := range []string{e.AnySource.Text, e.Peers[0].Sending.Text, e.Peers[1].Receiving.Text} {
		if want := wait(uint32(i + 1)).Facts.Text(); text != want {
			t.Errorf("says %q, want %q", text, want)
		}
	}
	for i, want := range []string{
		"a send of a program that no longer exists is open: rank 2 may ask for its DATA, or has not acknowledged it",
		"rank 3 was cleared to send a message to an operation that was aborted: it is discarded",
		"a message of rank 4 that begins now is for a program that no longer exists: it is discarded", "",
	} {
		if got := e.Peers[i].UnfinishedText; got != want {
			t.Errorf("says %q, want %q", got, want)
		}
	}
}

// TestAddCounts checks that each count is added to the same count.
func TestAddCounts(t *testing.T) {
	c := MessageCounts{Sent: 1, Received: 2, Failed: 3, Retransmissions: 4}
	c.Add(&MessageCounts{Sent: 10, Received: 20, Failed: 30, Retransmissions: 40})
	if c != (MessageCounts{Sent: 11, Received: 22, Failed: 33, Retransmissions: 44}) {
		t.Errorf("%+v", c)
	}
}

// TestTransportText checks that transports are listed in order.
func TestTransportText(t *testing.T) {
	r := RankInfo{Transports: []Transport{TransportUDP, TransportSHM}}
	if got := r.TransportText(", "); got != "udp, shm" {
		t.Errorf("%q", got)
	}
}
