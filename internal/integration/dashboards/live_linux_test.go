package dashboards_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
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
	keep(t, func(ctx context.Context) {
		for _, p := range [][]byte{protocol.CloudFPGA.Append(nil, other), protocol.CloudFPGA.Append(nil, direction),
			corrupt} {
			front.WriteToUDPAddrPort(p, n.address(0))
		}
		for range 200 { // more than the socket can buffer
			stranger.WriteToUDPAddrPort(make([]byte, 1400), n.address(7))
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

// fpgaFaults lists the alerts that must fire for the daemon of startFPGAs, and starvedFaults those for the daemon of
// startStarved.
var (
	fpgaFaults    = []string{"ZrlmpiDeliveredDuplicate rank 0 peer 1", "ZrlmpiAckSlowerThanUsual rank 2"}
	starvedFaults = []string{"ZrlmpidFilesRunOut", "ZrlmpidLogLinesLost", "ZrlmpidMemoryHigh"}
)

// nobody is a target without a daemon.
const nobody = "127.0.0.1:1"

// TestLive runs a real Prometheus with the shipped rules on a healthy daemon, a daemon whose programs make collective
// calls, faulty daemons, and a missing one. It checks that all queries of the dashboard return data, also from a
// Prometheus without native histograms, that all faults raise alerts, and that the healthy daemon raises none.
func TestLive(t *testing.T) {
	path := findPrometheus(t)
	var isSlow atomic.Bool
	sound, collective, faulty, fpgas := startSound(t), startCalling(t), startFaulty(t), startFPGAs(t, &isSlow)
	starved := startStarved(t)
	targets := []string{sound.target, collective.target, faulty.target, fpgas.target, starved, nobody}
	p := runPrometheus(t, path, configure(t, path, targets, "250ms"), "--enable-feature=native-histograms")
	classic := runPrometheus(t, path, configure(t, path, targets, "1s"))

	// First, because the other tests can use the time until Prometheus knows how fast ACKs usually are.
	t.Run("FPGAs", func(t *testing.T) {
		usual := `zrlmpi:handshake_phase_seconds:p99_usual{instance="` + fpgas.target + `", rank="2"}`
		eventually(t, func(ctx context.Context) string {
			switch ok, err := p.holds(ctx, usual); {
			case err != nil:
				return err.Error()
			case !ok:
				return "there is no usual time"
			}
			isSlow.Store(true)
			return ""
		})
		p.waitFiring(t, fpgas.target, fpgaFaults)
	})
	t.Run("panels", func(t *testing.T) { p.checkQueries(t) })
	t.Run("panels of classic histograms", func(t *testing.T) { classic.checkQueries(t) })
	t.Run("format", func(t *testing.T) {
		for _, target := range []string{sound.target, collective.target, faulty.target} {
			checkFormat(t, target)
		}
	})
	t.Run("faults", func(t *testing.T) { p.waitFiring(t, faulty.target, faults) })
	t.Run("starved", func(t *testing.T) { p.waitFiring(t, starved, starvedFaults) })
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

// checkFormat checks that the metrics of a daemon are valid according to the library of Prometheus, and in text format
// also according to promtool, which lints names and help texts as well. Prometheus itself reads the other formats.
func checkFormat(t *testing.T, target string) {
	t.Helper()
	for _, format := range []expfmt.Format{
		expfmt.NewFormat(expfmt.TypeTextPlain), expfmt.NewFormat(expfmt.TypeProtoDelim),
	} {
		body := scrape(t, target, format)
		names := make(map[string]bool)
		for decoder := expfmt.NewDecoder(bytes.NewReader(body), format); ; {
			var family dto.MetricFamily
			if err := decoder.Decode(&family); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			if names[family.GetName()] {
				t.Errorf("%s: there are two families %s", format, family.GetName())
			}
			names[family.GetName()] = true
		}
		if len(names) < 40 {
			t.Errorf("%s: %d families", format, len(names))
		}
	}
	cmd := exec.CommandContext(t.Context(), needs.Program(t, "the format of metrics", "promtool", "prometheus"), "check",
		"metrics")
	cmd.Stdin = bytes.NewReader(scrape(t, target, expfmt.NewFormat(expfmt.TypeTextPlain)))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// scrape returns the metrics of a daemon in a format.
func scrape(t *testing.T, target string, format expfmt.Format) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+target+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", string(format))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if served := expfmt.ResponseFormat(resp.Header); err != nil || served.FormatType() != format.FormatType() {
		t.Fatalf("asked for %s: %s, %v", format, served, err)
	}
	return body
}

// checkQueries checks that all queries of the dashboard return data.
func (s *server) checkQueries(t *testing.T) {
	for _, q := range queries(t) {
		t.Run(q.panel, func(t *testing.T) {
			t.Parallel()
			eventually(t, func(ctx context.Context) string {
				switch ok, err := s.holds(ctx, q.expr); {
				case err != nil:
					return fmt.Sprintf("%s: %v", q.expr, err)
				case !ok:
					return q.expr + " finds nothing"
				}
				return ""
			})
		})
	}
}

// TestMissing runs Prometheus without a target for zrlmpid.
func TestMissing(t *testing.T) {
	path := findPrometheus(t)
	dir := configure(t, path, []string{nobody}, "250ms")
	config := filepath.Join(dir, "prometheus.yml")
	write(t, config, change(t, read(t, config), "job_name: zrlmpid", "job_name: node"))
	runPrometheus(t, path, dir).waitFiring(t, "", []string{"ZrlmpidMissing"})
}

// waitFiring waits until each of the alerts has fired for a target, and checks their labels and texts.
func (s *server) waitFiring(t *testing.T, target string, alerts []string) {
	t.Helper()
	seen := make(map[string]bool) // some fire only intermittently
	eventually(t, func(ctx context.Context) string {
		firing, err := s.firing(ctx, target)
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
		return without(alerts, seen)
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

// checkText checks that the alert has a severity and its section of docs/operations.md, and that Prometheus could
// expand its templates.
func checkText(t *testing.T, a alert) {
	t.Helper()
	name := a.Labels["alertname"]
	if !strings.HasSuffix(a.Annotations["runbook_url"], "/docs/operations.md#"+strings.ToLower(name)) ||
		!strings.Contains(read(t, "../../../docs/operations.md"), "\n### "+name+"\n") {
		t.Errorf("%v: runbook %q", a, a.Annotations["runbook_url"])
	}
	if severity := a.Labels["severity"]; !slices.Contains([]string{"critical", "warning", "info"}, severity) {
		t.Errorf("%v: severity %q", a, severity)
	}
	for _, name := range []string{"summary", "description", "runbook_url"} {
		if s := a.Annotations[name]; s == "" || strings.Contains(s, "error") && strings.Contains(s, "template") ||
			strings.Contains(s, "no value") || strings.Contains(s, "{{") {
			t.Errorf("%v: %s: %q", a, name, s)
		}
	}
}

// panelQuery is a query of a panel or an annotation of the dashboard, as sent by Grafana.
type panelQuery struct{ panel, expr string }

// queries returns all queries of the dashboard, with its variables set to All.
func queries(t *testing.T) (all []panelQuery) {
	t.Helper()
	var d struct {
		Annotations struct {
			List []struct{ Name, Expr string }
		}
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
	for _, a := range d.Annotations.List[1:] { // the first one is built in
		all = append(all, panelQuery{a.Name, variables.Replace(a.Expr)})
	}
	if len(all) < 40 {
		t.Fatalf("%d queries", len(all))
	}
	return all
}
