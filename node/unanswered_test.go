package node

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestSilent checks that a peer is silent if a message to it is waiting and no packet was received from it, not even a
// dropped one.
func TestSilent(t *testing.T) {
	waits := state.OldestWait{Waits: true, Awaited: protocol.ClearToSend, Elapsed: 7 * time.Second}
	heard, dropped := state.PeerCounters{OldestSend: waits}, state.PeerCounters{OldestSend: waits}
	heard.PacketsIn[protocol.Ack] = 1
	dropped.Drops[state.DropReserved] = 1
	for _, tt := range []struct {
		c    state.PeerCounters
		want time.Duration
	}{
		{state.PeerCounters{OldestSend: waits}, 7 * time.Second},
		{state.PeerCounters{OldestRecv: waits}, 0},
		{heard, 0},
		{dropped, 0},
	} {
		if since, silent := unansweredWait(&tt.c); since != tt.want || silent != (tt.want > 0) {
			t.Errorf("%+v: %v, %v", tt.c, since, silent)
		}
	}
}

// TestUnanswered checks that a rank that does not answer is reported once.
func TestUnanswered(t *testing.T) {
	addrs, err := freeAddresses(3)
	if err != nil {
		t.Fatal(err)
	}
	d, err := open(mustParse(t, fmt.Sprintf(`
defaults: {profile: extended, transport: udp}
ranks:
- {rank: 0, address: %q, run: host}
- {rank: 1, address: %q, run: host}
- {rank: 2, address: %q, peer: software}
`, addrs[0], addrs[1], addrs[2])), 0, nil, &jobProcess{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(t.Context())
	if _, err := d.Start(mpe.Operation{Kind: mpe.OpSend, Peer: 1, Buf: make([]byte, 8)}); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	u := silenceWatcher{rank: d.rank, output: &text, reported: map[int]bool{}}
	u.check()
	u.check()
	if !regexp.MustCompile(`^zrlmpi: rank 1 \(software at \S+\) has not answered: rank 0 has waited 0s to send to it\n$`).MatchString(text.String()) {
		t.Errorf("%q", &text)
	}
}

// TestSilentSender checks that a deployed rank that is silent during a receive is reported once, because it may have
// sent its request before this process started.
func TestSilentSender(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	addrs, err := freeAddresses(3)
	if err != nil {
		t.Fatal(err)
	}
	d, err := open(mustParse(t, fmt.Sprintf(`
ranks:
- {rank: 0, address: %q, run: host}
- {rank: 1, address: %q, peer: cpu}
- {rank: 2, address: %q, peer: software}
`, addrs[0], addrs[1], addrs[2])), 0, nil, &jobProcess{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(t.Context())
	for _, peer := range []int{1, 2} {
		if _, err := d.Start(mpe.Operation{Kind: mpe.OpRecv, Peer: peer, Buf: make([]byte, 8)}); err != nil {
			t.Fatal(err)
		}
	}
	var text strings.Builder
	u := silenceWatcher{rank: d.rank, output: &text, reported: map[int]bool{}}
	u.check()
	u.check()
	want := regexp.MustCompile(`^zrlmpi: no packet received from rank 1 \(cpu at \S+\): rank 0 has waited 0s to receive ` +
		`from it\. If it asked to send before this process started, .*\n$`)
	if !want.MatchString(text.String()) {
		t.Errorf("%q", &text)
	}
	for _, w := range d.Waits(0) {
		if named := strings.Contains(w.Text(), "before this process started"); named != (w.Remote == 1) {
			t.Errorf("%q", w.Text())
		}
	}
}
