package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// family is a metric with its labels.
type family struct {
	name, help string
	kind       prometheus.ValueType // of all but histograms
	labels     []string
	desc       *prometheus.Desc
}

// families are all families of ours, in the order of the documentation.
var families []*family

func newFamily(name string, kind prometheus.ValueType, help string, labels ...string) *family {
	f := &family{name: name, help: help, kind: kind, labels: labels, desc: prometheus.NewDesc(name, help, labels, nil)}
	families = append(families, f)
	return f
}

const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
	untyped = prometheus.UntypedValue // of histograms, which have none
)

var (
	buildInfo = newFamily("zrlmpi_build_info", gauge,
		"Always 1; the labels say which zrlmpid this is.", "version", "revision", "goversion")
	logLinesLost = newFamily("zrlmpi_log_lines_lost_total", counter,
		"Log lines lost because the log was read too slowly, or could not be written.")
	reloadGood = newFamily("zrlmpi_config_last_reload_successful", gauge,
		"Whether the last attempt to load the configuration succeeded.")
	reloadTime = newFamily("zrlmpi_config_last_reload_success_timestamp_seconds", gauge,
		"When the configuration was last loaded with success, as Unix time.")

	phaseSeconds = newFamily("zrlmpi_handshake_phase_seconds", untyped,
		"Time that a phase of a message took, by kind of peer.", "rank", "profile", "kind", "direction", "phase")
	peerPhaseSeconds = newFamily("zrlmpi_peer_phase_seconds", untyped,
		"Time that a phase of a message took, by peer.", "rank", "peer", "direction", "phase")

	messages = newFamily("zrlmpi_messages_total", counter,
		"Messages that ended well.", "rank", "peer", "direction")
	messageBytes = newFamily("zrlmpi_message_bytes_total", counter,
		"Payload of the messages that ended well.", "rank", "peer", "direction")
	messageFailures = newFamily("zrlmpi_message_failures_total", counter,
		"Messages that ended with an error.", "rank", "peer")
	packets = newFamily("zrlmpi_packets_total", counter,
		"Datagrams sent and received, or packets where the transport is a stream.", "rank", "peer", "direction", "type")
	packetBytes = newFamily("zrlmpi_packet_bytes_total", counter,
		"Bytes in those packets, with the protocol's headers.", "rank", "peer", "direction", "type")
	repeats = newFamily("zrlmpi_retransmissions_total", counter,
		"Packets sent again.", "rank", "peer")
	giveUps = newFamily("zrlmpi_give_ups_total", counter,
		"Messages or links given up because the peer did not answer.", "rank", "peer")
	drops = newFamily("zrlmpi_drops_total", counter,
		"What arrived and was not used.", "rank", "peer", "reason")
	events = newFamily("zrlmpi_events_total", counter,
		"Other events of the protocol.", "rank", "peer", "event")

	collectives = newFamily("zrlmpi_collectives_total", counter,
		"Collective calls that have begun.", "rank", "collective", "algorithm")
	collectiveFailures = newFamily("zrlmpi_collective_failures_total", counter,
		"Collective calls that ended with an error.", "rank", "collective", "algorithm")
	disagreements = newFamily("zrlmpi_collective_disagreements_total", counter,
		"Communicators whose ranks are not configured alike for collectives.", "rank")

	postedReceives = newFamily("zrlmpi_posted_receives", gauge,
		"Receives that no message has matched.", "rank")
	unexpectedMessages = newFamily("zrlmpi_unexpected_messages", gauge,
		"Messages that no receive has matched.", "rank")
	queuedSends = newFamily("zrlmpi_queued_sends", gauge,
		"Sends of which nothing was sent.", "rank", "peer")
	inFlightMessages = newFamily("zrlmpi_in_flight_messages", gauge,
		"Sends that have begun and have not ended.", "rank", "peer")
	inFlightPackets = newFamily("zrlmpi_in_flight_packets", gauge,
		"Packets that are not acknowledged.", "rank", "peer")
	oldestWait = newFamily("zrlmpi_oldest_wait_seconds", gauge,
		"For how long the oldest message that waits has waited.", "rank", "peer", "direction", "waits_for")
	roundTrip = newFamily("zrlmpi_round_trip_seconds", gauge,
		"Smoothed round trip of a packet and its acknowledgement.", "rank", "peer")

	socketDrops = newFamily("zrlmpi_socket_drops_total", counter,
		"Datagrams that the kernel dropped for want of room in the socket.", "rank")
	socketBuffer = newFamily("zrlmpi_socket_buffer_bytes", gauge,
		"Receive buffer that the kernel granted the socket.", "rank")
	offloadEnabled = newFamily("zrlmpi_offload_enabled", gauge,
		"Whether the kernel does this for the socket.", "rank", "feature")
	attachedPrograms = newFamily("zrlmpi_attached_programs", gauge,
		"Programs that have the rank.", "rank")
	kernelUp = newFamily("zrlmpi_kernel_up", gauge,
		"Whether the stand-in's kernel runs.", "rank", "kernel")
)

// counterAt returns a counter that began at created.
func (f *family) counterAt(created time.Time, value uint64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetricWithCreatedTimestamp(f.desc, f.kind, float64(value), created, labels...)
}

func (f *family) gauge(value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(f.desc, f.kind, value, labels...)
}
