package node

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/query"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/node/recorder"
)

// TestHandle checks that a rank answers each kind of request with the right document, and rejects unknown kinds.
func TestHandle(t *testing.T) {
	addrs, err := freeAddresses(3)
	if err != nil {
		t.Fatal(err)
	}
	cfg := mustParse(t, fmt.Sprintf(`
ranks:
- {rank: 0, address: %q, run: host}
- {rank: 1, address: %q, run: host}
- {rank: 2, address: %q, peer: fpga}
`, addrs[0], addrs[1], addrs[2]))
	r := started(t, cfg, 0)
	report := func(resp query.Response) *Report {
		p, _ := resp.Document.(*Report)
		return p
	}
	for _, tt := range []struct {
		kind  query.Kind
		right func(resp query.Response) bool
	}{
		{query.Status, func(resp query.Response) bool { p := report(resp); return p != nil && p.Peers == nil }},
		{query.Metrics, func(resp query.Response) bool {
			p := report(resp)
			return p != nil && len(p.Peers) == 2 && p.Cluster[0].Profile == "" && p.Cluster[1].Profile != "" &&
				p.Times.Peers == nil
		}},
		{query.Reports, func(resp query.Response) bool {
			reports, ok := resp.Document.(state.Reports)
			return ok && resp.Err == nil && len(reports.Results) == 3 // outside a job, no rank is known to be local
		}},
		{query.Reset, func(resp query.Response) bool {
			return resp.Err == nil && resp.Document == nil &&
				resp.Stream == nil
		}},
		{query.Packets, func(resp query.Response) bool {
			return resp.Err != nil &&
				!errors.Is(resp.Err, query.ErrUnknown)
		}},
		{query.Support, func(resp query.Response) bool { return errors.Is(resp.Err, query.ErrUnknown) }},
		{"", func(resp query.Response) bool { return errors.Is(resp.Err, query.ErrUnknown) }},
	} {
		if resp := r.handleQuery(t.Context(), time.Now(), query.Request{Kind: tt.kind, Peer: 1}); !tt.right(resp) {
			t.Errorf("%q: %+v", tt.kind, resp)
		}
	}
	r.FlightRecorder = recorder.New(1<<20, []recorder.Plan{{Rank: 0}}).Rank(0)
	if resp := r.handleQuery(t.Context(), time.Now(), query.Request{Kind: query.Packets}); resp.Stream == nil ||
		resp.Err != nil {
		t.Errorf("a rank that records packets: %+v", resp)
	}
	if resp := r.handleQuery(t.Context(), time.Now(), query.Request{}); !errors.Is(resp.Err, query.ErrUnknown) {
		t.Errorf("a request of no kind: %+v", resp)
	}
}
