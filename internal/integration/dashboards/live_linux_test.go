package dashboards_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// startSound starts a healthy daemon under load. Its deadlines are long, so that operations do not fail because the
// machine is busy.
func startSound(t *testing.T) *running {
	n := newNetwork(t)
	d := startDaemon(t, daemon.Options{}, "defaults: {deadlines: {ack: 60s, data: 60s}}",
		fmt.Sprintf("address: %q, run: host", n.address(0)),
		fmt.Sprintf("address: %q, run: standin, kernel: echo, kernel_options: {peer: 0}", n.address(1)),
		fmt.Sprintf("address: %q, run: standin, peer: software, kernel: echo, kernel_options: {peer: 0}, link: "+
			"{profile: extended}", n.address(2)))
	d.ping(t, 1)
	d.ping(t, 2)
	return d
}

// startFaulty starts a daemon with every fault that can be produced quickly.
func startFaulty(t *testing.T) *running {
	n, far := newNetwork(t), newNetwork(t)
	way := newRelay(t, n.address(0), far.address(0), 0.1, 80*time.Millisecond)
	front := way.to(t, n.address(1), far.address(1))
	way.to(t, n.address(2), far.address(2))
	const software = "peer: software, link: {profile: extended, transport: udp"
	unjudged := daemon.Options{Log: zap.NewNop()} // packets are lost and late
	startDaemon(t, unjudged, "",
		fmt.Sprintf("address: %q, peer: software", far.address(0)),
		fmt.Sprintf("address: %q, run: standin, kernel: echo, kernel_options: {peer: 0}, quirks: off", far.address(1)),
		fmt.Sprintf("address: %q, run: standin, kernel: echo, kernel_options: {peer: 0}, %s}", far.address(2),
			software))

	d := startDaemon(t, unjudged, "limits: {receive_buffer: 4KiB, offload: off}",
		fmt.Sprintf("address: %q, run: host", n.address(0)),
		fmt.Sprintf("address: %q, peer: fpga", n.address(1)),
		fmt.Sprintf("address: %q, %s}", n.address(2), software),
		// The next two ranks do not run. The two after them ask for a message and die.
		fmt.Sprintf("address: %q, peer: fpga", n.address(3)),
		fmt.Sprintf("address: %q, %s, deadlines: {ack: 0s}}", n.address(4), software),
		fmt.Sprintf("address: %q, peer: fpga, link: {deadlines: {ack: 0s}}", n.address(5)),
		fmt.Sprintf("address: %q, peer: fpga, link: {deadlines: {ack: 300ms}}", n.address(6)),
		// This rank sends to a rank without a program, which strangers flood at the same time.
		fmt.Sprintf("address: %q, run: host", n.address(7)),
		fmt.Sprintf("address: %q, run: standin, kernel: source, kernel_options: {peer: 7, words: 1}", n.address(8)),
		// A kernel exits after one message.
		fmt.Sprintf("address: %q, run: standin, kernel: source, kernel_options: {peer: 10, words: 1, count: 1}",
			n.address(9)),
		fmt.Sprintf("address: %q, run: standin, kernel: sink, kernel_options: {peer: 9}", n.address(10)))
	for _, echo := range []int{1, 2} {
		d.ping(t, echo)
	}
	for _, peer := range []int{3, 4, 5, 6} {
		d.send(t, peer)
	}
	keep(t, func(ctx context.Context) {
		d.client.Recv(ctx, control.RecvRequest{To: 0, From: 3, Words: 1})
	})

	if err := d.Reload(config.New()); err == nil {
		t.Error("the daemon takes a configuration without ranks")
	}
	for _, rank := range []int{5, 6} {
		dies := socket(t, n.address(rank))
		clear := protocol.CloudFPGA.Append(nil,
			protocol.Header{Src: uint32(rank), Dst: 0, Type: protocol.ClearToSend, Call: protocol.RecvInt})
		pump(dies, func(_ []byte, from netip.AddrPort) { dies.WriteToUDPAddrPort(clear, from) })
	}
	request := protocol.Header{Src: 1, Dst: 0, Type: protocol.SendRequest, Call: protocol.SendInt}
	other, direction := request, request
	other.Src, direction.Call = 3, protocol.RecvInt
	corrupt := protocol.CloudFPGA.Append(nil, request)
	corrupt[17] = 99 // not a type
	stranger := socket(t, n.address(20))
	tick := time.NewTicker(20 * time.Millisecond)
	t.Cleanup(tick.Stop)
	keep(t, func(ctx context.Context) {
		for _, p := range [][]byte{protocol.CloudFPGA.Append(nil, other), protocol.CloudFPGA.Append(nil, direction),
			corrupt} {
			front.WriteToUDPAddrPort(p, n.address(0))
		}
		for range 200 { // more than the socket can buffer
			stranger.WriteToUDPAddrPort(make([]byte, 1400), n.address(7))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	})
	return d
}

// faults lists the alerts that must fire for the faulty daemon.
var faults = []string{
	"ZrlmpidReloadFailed",
	"ZrlmpiSendWaits rank 0 peer 3", "ZrlmpiSendWaits rank 8 peer 7", "ZrlmpiSendHeldBack rank 0 peer 4",
	"ZrlmpiMessageStalled rank 0 peer 5",
	"ZrlmpiMessageNotReceived rank 7", "ZrlmpiReceiveWaits rank 0 peer 3",
	"ZrlmpiPeerUnreachable rank 0 peer 6", "ZrlmpiMessagesFail rank 0 peer 6", "ZrlmpiKernelDown rank 9",
	"ZrlmpiRetransmissions rank 0 peer 1", "ZrlmpiRetransmissions rank 0 peer 2", "ZrlmpiSocketDrops rank 7",
	"ZrlmpiUnknownAddress rank 7 peer unknown",
	"ZrlmpiWrongRankMap rank 0 peer 1", "ZrlmpiMalformedPackets rank 0 peer 1", "ZrlmpiCallMismatch rank 0 peer 1",
	"ZrlmpiAckSlow rank 0", "ZrlmpiRoundTripSlow rank 0 peer 2", "ZrlmpiOffloadOff rank 0",
}

// nobody is a target without a daemon.
const nobody = "127.0.0.1:1"

// TestLive runs a real Prometheus with the shipped rules on a healthy daemon, a daemon whose programs make collective
// calls, a faulty daemon, and a missing one. It checks that all queries of the dashboard return data, that all faults
// raise alerts, and that the healthy daemon raises none.
func TestLive(t *testing.T) {
	path := findPrometheus(t)
	sound, collective, faulty := startSound(t), startCalling(t), startFaulty(t)
	p := startPrometheus(t, path, []string{sound.target, collective.target, faulty.target, nobody})

	t.Run("panels", func(t *testing.T) {
		for _, q := range queries(t) {
			t.Run(q.panel, func(t *testing.T) {
				t.Parallel()
				eventually(t, func(ctx context.Context) string {
					switch ok, err := p.holds(ctx, q.expr); {
					case err != nil:
						return fmt.Sprintf("%s: %v", q.expr, err)
					case !ok:
						return q.expr + " finds nothing"
					}
					return ""
				})
			})
		}
	})
	t.Run("faults", func(t *testing.T) {
		seen := make(map[string]bool) // some fire only intermittently
		eventually(t, func(ctx context.Context) string {
			firing, err := p.firing(ctx, faulty.target)
			if err != nil {
				return err.Error()
			}
			for _, a := range firing {
				if !seen[a.String()] {
					seen[a.String()] = true
					t.Logf("%v: %s", a, a.Annotations["summary"])
					checkText(t, a)
				}
			}
			return without(faults, seen)
		})
	})
	t.Run("down", func(t *testing.T) {
		eventually(t, func(ctx context.Context) string {
			firing, err := p.firing(ctx, nobody)
			if err != nil || len(firing) != 1 || firing[0].String() != "ZrlmpidDown" {
				return fmt.Sprintf("of nobody, %v fire; %v", firing, err)
			}
			checkText(t, firing[0])
			return ""
		})
	})
	// Alerts caused by a busy machine resolve.
	t.Run("sound", func(t *testing.T) {
		eventually(t, func(ctx context.Context) string {
			firing, err := p.firing(ctx, sound.target)
			if err != nil {
				return err.Error()
			}
			ok, err := p.holds(ctx, `zrlmpi:messages:rate5m{instance="`+sound.target+`"} > 0`)
			if err != nil || !ok {
				return fmt.Sprintf("the sound daemon does nothing; %v", err)
			}
			var complaints []string
			for _, a := range firing {
				// The machine may lack offload, which also raises an alert.
				if a.Labels["alertname"] != "ZrlmpiOffloadOff" {
					complaints = append(complaints, a.String()+": "+a.Annotations["description"])
				}
			}
			return strings.Join(complaints, "\n")
		})
	})
}

// without returns the alerts that do not occur in seen.
func without(alerts []string, seen map[string]bool) string {
	var missing []string
	for _, a := range alerts {
		if !seen[a] {
			missing = append(missing, a)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return fmt.Sprintf("these do not fire: %s\nthese did: %v", strings.Join(missing, ", "),
		slices.Sorted(maps.Keys(seen)))
}

// checkText checks that Prometheus could expand the alert's templates.
func checkText(t *testing.T, a alert) {
	t.Helper()
	for _, name := range []string{"summary", "description", "runbook_url"} {
		if s := a.Annotations[name]; s == "" || strings.Contains(s, "error") && strings.Contains(s, "template") ||
			strings.Contains(s, "no value") || strings.Contains(s, "{{") {
			t.Errorf("%v: %s: %q", a, name, s)
		}
	}
}

// panelQuery is a query of the dashboard, as sent by Grafana.
type panelQuery struct{ panel, expr string }

// queries returns all queries of the dashboard, with its variables set to All.
func queries(t *testing.T) (all []panelQuery) {
	t.Helper()
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, RefID string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "../../../deploy/grafana/zrlmpid.json")), &d); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$__rate_interval", "5s", "$__range", "1m", "$instance", ".*", "$rank", ".*",
		"$peer", ".*")
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			all = append(all, panelQuery{p.Title + " " + q.RefID, variables.Replace(q.Expr)})
		}
	}
	if len(all) < 40 {
		t.Fatalf("%d queries", len(all))
	}
	return all
}
