package metrics

import (
	"slices"
	"strings"
	"sync"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
)

// family describes a metric family and its labels.
type family struct {
	name, help string
	kind       dto.MetricType
	// labels contains the names of the labels in the order in which callers pass the values. byName contains their
	// indexes, sorted by name.
	labels []string
	byName []int
	// index is the family's position in families.
	index int
}

// families contains all metric families in the order in which the documentation lists them.
var families []*family

func newFamily(name string, kind dto.MetricType, help string, labels ...string) *family {
	f := &family{name: name, help: help, kind: kind, labels: labels, index: len(families)}
	for i := range labels {
		f.byName = append(f.byName, i)
	}
	slices.SortFunc(f.byName, func(a, b int) int { return strings.Compare(labels[a], labels[b]) })
	families = append(families, f)
	return f
}

// familiesByName contains all metric families sorted by name, which is the order of a scrape.
var familiesByName = sync.OnceValue(func() []*family {
	sorted := slices.Clone(families)
	slices.SortFunc(sorted, func(a, b *family) int { return strings.Compare(a.name, b.name) })
	return sorted
})

// newMessage returns the protobuf message of the family, without metrics.
func (f *family) newMessage() *dto.MetricFamily {
	return &dto.MetricFamily{Name: proto.String(f.name), Help: proto.String(f.help), Type: f.kind.Enum()}
}

const (
	counter   = dto.MetricType_COUNTER
	gauge     = dto.MetricType_GAUGE
	histogram = dto.MetricType_HISTOGRAM
)

var (
	buildInfo = newFamily("zrlmpi_build_info", gauge,
		"Always 1, with version, revision and Go version as labels.", "version", "revision", "goversion")
	logLinesLost = newFamily("zrlmpi_log_lines_lost_total", counter,
		"Log lines lost because the log was full or could not be written.")
	accessDenied = newFamily("zrlmpi_access_denied_total", counter,
		"Programs and requests refused because of their user, by socket.", "socket")
	webConfigFailures = newFamily("zrlmpi_web_config_failures_total", counter,
		"Changes of the web configuration or its files that were refused.")
	reloadSuccess = newFamily("zrlmpi_config_last_reload_successful", gauge,
		"Last load of the configuration succeeded (1) or failed (0).")
	reloadTime = newFamily("zrlmpi_config_last_reload_success_timestamp_seconds", gauge,
		"Unix time of the last successful load of the configuration.")

	phaseSeconds = newFamily("zrlmpi_handshake_phase_seconds", histogram,
		"Duration of the phases of messages, by kind of peer.", "rank", "profile", "kind", "direction", "phase")
	peerPhaseSeconds = newFamily("zrlmpi_peer_phase_seconds", histogram,
		"Duration of the phases of messages, by peer.", "rank", "peer", "direction", "phase")

	messages = newFamily("zrlmpi_messages_total", counter,
		"Messages that completed without an error.", "rank", "peer", "direction")
	messageBytes = newFamily("zrlmpi_message_bytes_total", counter,
		"Payload bytes of messages that completed without an error.", "rank", "peer", "direction")
	messageFailures = newFamily("zrlmpi_message_failures_total", counter,
		"Messages that ended with an error.", "rank", "peer")
	packets = newFamily("zrlmpi_packets_total", counter,
		"Datagrams sent and received; packets if the transport is a stream.", "rank", "peer", "direction", "type")
	packetBytes = newFamily("zrlmpi_packet_bytes_total", counter,
		"Bytes of packets, including ZRLMPI headers.", "rank", "peer", "direction", "type")
	retransmissions = newFamily("zrlmpi_retransmissions_total", counter,
		"Retransmitted packets.", "rank", "peer")
	unreachable = newFamily("zrlmpi_peer_unreachable_total", counter,
		"Messages and links that timed out because the peer did not answer.", "rank", "peer")
	peerUp = newFamily("zrlmpi_peer_up", gauge,
		"0 from when the peer did not answer in time until its next packet arrives, otherwise 1.", "rank", "peer")
	drops = newFamily("zrlmpi_drops_total", counter,
		"Packets dropped, by reason.", "rank", "peer", "reason")
	events = newFamily("zrlmpi_events_total", counter,
		"Protocol events, by type.", "rank", "peer", "event")

	collectives = newFamily("zrlmpi_collectives_total", counter,
		"Collective calls started.", "rank", "collective", "algorithm")
	collectiveFailures = newFamily("zrlmpi_collective_failures_total", counter,
		"Collective calls that ended with an error.", "rank", "collective", "algorithm")
	disagreements = newFamily("zrlmpi_collective_disagreements_total", counter,
		"Communicators whose members have different collectives settings.", "rank")

	postedReceives = newFamily("zrlmpi_posted_receives", gauge,
		"Posted receives without a matching message.", "rank")
	unexpectedMessages = newFamily("zrlmpi_unexpected_messages", gauge,
		"Unexpected messages: received without a matching receive.", "rank")
	queuedSends = newFamily("zrlmpi_queued_sends", gauge,
		"Sends that have not started.", "rank", "peer")
	inFlightMessages = newFamily("zrlmpi_in_flight_messages", gauge,
		"Sends that have started and are not complete.", "rank", "peer")
	inFlightPackets = newFamily("zrlmpi_in_flight_packets", gauge,
		"Packets sent and not acknowledged.", "rank", "peer")
	oldestWait = newFamily("zrlmpi_oldest_wait_seconds", gauge,
		"Age of the oldest wait.", "rank", "peer", "direction", "waits_for")
	roundTrip = newFamily("zrlmpi_round_trip_seconds", gauge,
		"Smoothed round-trip time.", "rank", "peer")

	socketDrops = newFamily("zrlmpi_socket_drops_total", counter,
		"Kernel drops: receive buffer of the socket full.", "rank")
	socketBuffer = newFamily("zrlmpi_socket_buffer_bytes", gauge,
		"Size of the receive buffer of the socket.", "rank")
	offloadEnabled = newFamily("zrlmpi_offload_enabled", gauge,
		"Offload feature enabled (1) or not (0).", "rank", "feature")
	pathDatagrams = newFamily("zrlmpi_xdp_datagrams_total", counter,
		"Datagrams sent and received by AF_XDP, and bypassed: left to the socket.", "rank", "direction")
	pathDrops = newFamily("zrlmpi_xdp_drops_total", counter,
		"Datagrams dropped by AF_XDP: frame corrupt, or ring full.", "rank", "reason")
	attachedPrograms = newFamily("zrlmpi_attached_programs", gauge,
		"Programs attached to the rank.", "rank")
	kernelUp = newFamily("zrlmpi_kernel_up", gauge,
		"Kernel of the stand-in running (1) or not (0).", "rank", "kernel")
)
