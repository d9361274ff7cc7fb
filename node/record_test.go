package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/metrics/phases"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// TestJobRecords checks that the report of a rank of a job has the phases of messages over networks, but not through
// shared memory.
func TestJobRecords(t *testing.T) {
	for transport, want := range map[string]uint64{"udp": 1, "shm": 0} {
		t.Run(transport, func(t *testing.T) {
			addrs, err := freeAddresses(2)
			if err != nil {
				t.Fatal(err)
			}
			cfg := mustParse(t, fmt.Sprintf(`
defaults: {profile: extended, transport: %s}
ranks:
- {rank: 0, address: %q, run: host}
- {rank: 1, address: %q, run: host}
`, transport, addrs[0], addrs[1]))
			var devices []device
			dir := filepath.Join(t.TempDir(), "job")
			for rank := range 2 {
				d, err := open(cfg, rank, nil, &jobProcess{directory: dir})
				if err != nil {
					t.Fatal(err)
				}
				devices = append(devices, d)
			}
			in, err := devices[1].Start(mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: make([]byte, 8)})
			if err != nil {
				t.Fatal(err)
			}
			out, err := devices[0].Start(mpe.Operation{Kind: mpe.OpSend, Peer: 1, Buf: make([]byte, 8)})
			if err != nil {
				t.Fatal(err)
			}
			_, errOut := out.Await(t.Context())
			_, errIn := in.Await(t.Context())
			text, err := json.Marshal(devices[0].rank.makeReport(time.Now(), true))
			var r Report
			if err := errors.Join(errOut, errIn, err, json.Unmarshal(text, &r)); err != nil {
				t.Fatal(err)
			}
			got := uint64(0)
			if h := r.Times.Recorder(0, 2).Peer(1)[phases.SendTotal]; h != nil {
				got = h.Count()
			}
			if got != want {
				t.Errorf("%d sends are recorded, want %d: %s", got, want, text)
			}
			for _, d := range devices {
				if err := d.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
