package standin_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/testkit/loopback"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/daemon/daemontest"
)

// TestFaults checks that packets are lost according to the rules of a stand-in's faults, regardless of which
// side sends them, and that the messages arrive nevertheless.
func TestFaults(t *testing.T) {
	network := loopback.Network(t)
	at := func(n int) string { return fmt.Sprintf("address: %s%d, ", network, n) }
	const echo = "run: standin, quirks: off, faults: {rules: [%s]}"
	d := daemontest.Start(t, daemon.Options{}, "",
		at(1)+"run: host",
		at(2)+fmt.Sprintf(echo, "packet CLEAR_TO_SEND nth 1 loss 100%"),
		at(3)+fmt.Sprintf(echo, "from 0 packet DATA nth 1-2 loss 100%"),
		at(4)+fmt.Sprintf(echo, "delay 10ms"))
	for rank, least := range map[int]time.Duration{1: 100 * time.Millisecond, 2: 100 * time.Millisecond,
		3: 60 * time.Millisecond} {
		var trips []control.Trip
		req := control.PingRequest{From: 0, To: rank, Words: 1000, Count: 2, Datatype: "int", Timeout: "20s"}
		err := d.Client.Ping(t.Context(), req, func(trip control.Trip) error {
			trips = append(trips, trip)
			return nil
		})
		if err != nil || len(trips) != 2 || !trips[0].Verified || !trips[1].Verified {
			t.Errorf("rank %d: %+v, %v", rank, trips, err)
			continue
		}
		if took := time.Duration(float64(trips[0].RoundTrip) * float64(time.Microsecond)); took < least {
			t.Errorf("rank %d: the first round trip takes %v, less than %v: no fault", rank, took, least)
		}
	}
}

// TestFaultsOverOtherTransports checks that a rank that does not use datagrams cannot have faults.
func TestFaultsOverOtherTransports(t *testing.T) {
	for _, transport := range []string{"tcp", "shm"} {
		cfg, err := config.Parse(strings.NewReader(`control: {socket: ""}
http: {listen: ""}
ranks:
  - {rank: 0, address: 127.0.0.1, run: host}
  - {rank: 1, address: 127.0.0.2, run: standin, peer: software, faults: {rules: [loss 1%]}}
defaults: {profile: extended, transport: `+transport+"}\n"), "test.yaml")
		if err != nil {
			t.Fatal(err)
		}
		want := "rank 1: they apply to datagrams, and none of its links uses udp: use transport: udp, or zrlctl impair"
		if _, err := daemon.New(cfg, daemon.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
