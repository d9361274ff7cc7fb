package wireshark_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/capturetest"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestSegments: a recording made on a machine with segmentation offload shows the same datagrams as a recording made on
// the wire.
func TestSegments(t *testing.T) {
	t.Parallel()
	record := func(together int) string {
		c := capturetest.New(capturetest.Ethernet)
		for i, words := range []uint32{1, 346, 347, 702, 1000, 15000} {
			c.AddMessage(time.Unix(1700000000, 0).Add(time.Duration(i)*time.Millisecond), capturetest.Message{
				Src: 0, Dst: 1, From: netip.MustParseAddrPort("10.0.0.1:2718"),
				To:    netip.MustParseAddrPort("10.0.0.2:2718"),
				Words: words, Shape: protocol.CPUShape(), MaxCoalesced: together,
			})
		}
		path := filepath.Join(t.TempDir(), "segments.pcap")
		if err := os.WriteFile(path, c.Pcap(capturetest.Format{}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	wire, host := dissect(t, record(1)), dissect(t, record(capturetest.MaxOffload))
	if len(host) >= len(wire) {
		t.Fatalf("%d frames, and %d on the wire: nothing is in one piece", len(host), len(wire))
	}
	for _, field := range []string{"zrlmpi.type", "zrlmpi.data.offset", "zrlmpi.data.bytes", "zrlmpi.data.complete",
		"zrlmpi.message"} {
		if got, want := values(host, field), values(wire, field); !slices.Equal(got, want) {
			t.Errorf("%s: %s\nwant %s", field, strings.Join(got, " "), strings.Join(want, " "))
		}
	}
	expectExperts(t, host, nil)
}

// values returns the values of a field in all frames.
func values(frames []frame, field string) (all []string) {
	for _, f := range frames {
		all = append(all, f[field]...)
	}
	return all
}
