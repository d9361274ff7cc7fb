package phases

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// counted returns the number of times recorded for each phase, for a single peer and for the peer's class.
func counted(r *Recorder, peer int) (one, all [NumPhases]uint64) {
	for ph := range NumPhases {
		if times := r.peers[peer].times; times != nil && times[ph] != nil {
			one[ph] = times[ph].Count()
		}
		all[ph] = r.peers[peer].class.Times[ph].Count()
	}
	return one, all
}

func TestPhases(t *testing.T) {
	const at = time.Hour
	for _, tt := range []struct {
		name   string
		send   bool
		phases handshake.Phases
		want   map[Phase]time.Duration
	}{
		{"send by rendezvous", true,
			handshake.Phases{Start: at, Request: at + 5, Clear: at + 10, Data: at + 30, Ack: at + 70},
			map[Phase]time.Duration{sendClear: 5, sendData: 20, sendAck: 40, SendTotal: 70}},
		{"eager send, buffered", true, handshake.Phases{Start: at, Data: at + 3},
			map[Phase]time.Duration{SendTotal: 3}},
		{"eager send, synchronous", true, handshake.Phases{Start: at, Clear: at + 2, Data: at + 2, Ack: at + 9},
			map[Phase]time.Duration{sendAck: 7, SendTotal: 9}},
		{"receive posted first", false,
			handshake.Phases{Start: at, Request: at + 100, Clear: at + 110, Data: at + 150, Ack: at + 150},
			map[Phase]time.Duration{recvRequest: 100, recvData: 40, recvTotal: 150}},
		{"receive posted last", false,
			handshake.Phases{Start: at + 100, Request: at, Clear: at + 110, Data: at + 150, Ack: at + 150},
			map[Phase]time.Duration{recvData: 40, recvTotal: 50}},
		{"eager receive posted last", false,
			handshake.Phases{Start: at + 100, Request: at, Clear: at + 100, Data: at + 7},
			map[Phase]time.Duration{recvTotal: 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := NewRecorder(0, manyPeers(1), 1)
			r.RecordMessage(&mpe.Status{Peer: 1, Send: tt.send, Phases: tt.phases}, nil)
			one, all := counted(r, 1)
			for ph := range NumPhases {
				d, ok := tt.want[ph]
				if n := map[bool]uint64{true: 1}[ok]; one[ph] != n || all[ph] != n {
					t.Errorf("%v: counted %d and %d times, want %d", PhaseNames[ph], one[ph], all[ph], n)
				} else if ok && r.peers[1].times[ph].Sum != float64(d) {
					t.Errorf("%v: %g ns, want %d", PhaseNames[ph], r.peers[1].times[ph].Sum, d)
				}
			}
		})
	}
}

func TestWhatIsNotCounted(t *testing.T) {
	r := NewRecorder(0, manyPeers(2), 2)
	r.RecordMessage(sent(1, time.Microsecond), errors.New("it failed"))
	r.RecordMessage(sent(0, time.Microsecond), nil) // a message of the rank to itself
	r.RecordMessage(sent(mpe.AnySource, time.Microsecond), nil)
	r.RecordMessage(sent(3, time.Microsecond), nil)
	for peer := 1; peer <= 2; peer++ {
		if one, all := counted(r, peer); one != [NumPhases]uint64{} || all != [NumPhases]uint64{} {
			t.Errorf("peer %d: %v, %v", peer, one, all)
		}
	}
}

func TestClasses(t *testing.T) {
	r := NewRecorder(1, []Peer{{"cloudfpga", "fpga"}, {}, {"extended", "software"}, {"cloudfpga", "fpga"}}, 4)
	r.RecordMessage(sent(0, time.Microsecond), nil)
	r.RecordMessage(sent(3, time.Microsecond), nil)
	r.RecordMessage(sent(2, time.Microsecond), nil)
	got := ""
	for _, k := range r.classes {
		got += fmt.Sprintf("%v %d, ", k.Peer, k.Times[sendAck].Count())
	}
	if want := "{cloudfpga fpga} 2, {extended software} 1, "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestPeersAreBounded checks that the first peers keep separate series, and that all other peers share series
// and memory.
func TestPeersAreBounded(t *testing.T) {
	r := NewRecorder(0, manyPeers(1000), 3)
	for _, peer := range []int{900, 7, 500, 1, 2, 3, 900} {
		r.RecordMessage(sent(peer, time.Microsecond), nil)
	}
	for peer, own := range map[int]bool{900: true, 7: true, 500: true, 1: false, 2: false, 3: false} {
		if got := r.peers[peer].times != &r.shared; got != own {
			t.Errorf("peer %d has separate series: %v", peer, got)
		}
	}
	if one, all := counted(r, 2); one[SendTotal] != 3 || all[SendTotal] != 7 {
		t.Errorf("the others: %v, in all %v", one, all)
	}
	if r.peers[4].times != nil {
		t.Error("a peer with which nothing has happened takes memory")
	}
}

// TestDoneDoesNotAllocate checks that RecordMessage does not allocate after the buckets have been created.
func TestDoneDoesNotAllocate(t *testing.T) {
	const peers = 64
	r := NewRecorder(0, manyPeers(peers), peers/2)
	var list []*mpe.Status
	for peer := 1; peer <= peers; peer++ {
		for _, unit := range []time.Duration{300 * time.Nanosecond, time.Microsecond, 20 * time.Microsecond} {
			list = append(list, sent(peer, unit), received(peer, unit))
		}
	}
	all := func() {
		for _, s := range list {
			r.RecordMessage(s, nil)
		}
	}
	all()
	if n := testing.AllocsPerRun(100, all); n != 0 {
		t.Errorf("%d messages take %g allocations", len(list), n)
	}
}
