package main

// The label selectors of the variables: of a daemon, of a local rank, and of its peers.
const (
	daemon = `job="zrlmpid", instance=~"$instance"`
	rank   = `instance=~"$instance", rank=~"$rank"`
	peer   = rank + `, peer=~"$peer"`
	// over is the range of rates: Grafana makes it long enough for the scrape interval.
	over = `[$__rate_interval]`
)

// pair is the legend of series of a rank and a peer.
const pair = "{{rank}} → {{peer}}"

// quantile is that of a phase's durations, summed up by labels. Prometheus has native
// histograms or classic ones, as it is set up.
func quantile(q, by, direction string) string {
	sel := `{` + rank + `, direction="` + direction + `"}`
	return `histogram_quantile(` + q + `, sum by (` + by + `) (rate(zrlmpi_handshake_phase_seconds` + sel + over + `)))` +
		` or histogram_quantile(` + q + `, sum by (` + by + `, le) (rate(zrlmpi_handshake_phase_seconds_bucket` + sel + over + `)))`
}

func peerQuantile(q, direction, phase string) string {
	return `histogram_quantile(` + q + `, sum by (instance, rank, peer) (rate(zrlmpi_peer_phase_seconds{` + peer +
		`, direction="` + direction + `", phase="` + phase + `"}` + over + `)))`
}

func heatOf(direction, phase string) string {
	return `sum(rate(zrlmpi_handshake_phase_seconds{` + rank + `, direction="` + direction + `", phase="` + phase + `"}` + over + `))`
}

func rows() []row {
	return []row{overview(), waits(), latency(), throughput(), collectives(), network(), nodes(), process()}
}

func overview() row {
	return row{"Overview", []line{
		{4, []sized{
			{4, number("Daemons", "none", "Number of the selected daemons that are up. Red: none.",
				`sum(up{`+daemon+`})`, level{-1, "red"}, level{1, "green"})},
			{4, number("Messages", "mps", "Messages sent and received without an error, per second.",
				`sum(rate(zrlmpi_messages_total{`+peer+`}`+over+`))`)},
			{4, number("Payload", "Bps", "Payload of those messages, without headers and retransmissions.",
				`sum(rate(zrlmpi_message_bytes_total{`+peer+`}`+over+`))`)},
			{4, number("Longest wait", "s", "Age of the oldest wait of an announced message or one in transfer. Receives without a message are excluded: they may wait as long as the program wants.",
				`max(zrlmpi_oldest_wait_seconds{`+peer+`, waits_for!="send_request"}) or vector(0)`, level{10, "orange"}, level{60, "red"})},
			{4, number("Retransmission ratio", "percentunit", "Retransmissions as a ratio of the packets sent. Investigate more than 1 %.",
				`sum(rate(zrlmpi_retransmissions_total{`+peer+`}`+over+`)) / sum(rate(zrlmpi_packets_total{`+peer+`, direction="out"}`+over+`))`,
				level{0.001, "orange"}, level{0.01, "red"})},
			{4, number("Unreachable", "short", "Messages and links that timed out in the time range because a peer did not answer.",
				`sum(increase(zrlmpi_peer_unreachable_total{`+peer+`}[$__range]))`, level{0.5, "red"}).once()},
		}},
		{7, []sized{
			{24, table("Firing alerts", "none", "Firing alerts of the rules in deploy/prometheus. Each alert has a section in docs/operations.md.",
				`ALERTS{alertstate="firing", alertname=~"Zrlmpi.*"}`,
				column{"severity", "Severity"}, column{"alertname", "Alert"}, column{"instance", "Daemon"}, column{"rank", "Rank"},
				column{"peer", "Peer"}, column{"direction", "Direction"}, column{"waits_for", "Waits for"}, column{"reason", "Reason"}, column{"kernel", "Kernel"})},
		}},
	}}
}

func waits() row {
	return row{"Waiting ranks", []line{
		{8, []sized{
			{12, table("Oldest wait of each pair", "s", "The oldest wait by rank, peer and direction. send_request: a receive without a message, which may be normal for the program. clear_to_send: the peer has posted no receive. data, ack: the message is in transfer. held_back: queued behind others.",
				`sort_desc(zrlmpi_oldest_wait_seconds{`+rank+`, peer=~"$peer|any"})`,
				column{"instance", "Daemon"}, column{"rank", "Rank"}, column{"peer", "Peer"}, column{"direction", "Direction"}, column{"waits_for", "Waits for"}, column{value, "Duration"}).
				coloured("Duration", level{10, "orange"}, level{60, "red"})},
			{12, lines("Longest waits", "s", "The same over time, without receives that have no message. A line that rises with time is one blocked message; a sawtooth is many that complete.",
				query{`zrlmpi_oldest_wait_seconds{` + rank + `, peer=~"$peer|any", waits_for!="send_request"}`, pair + " {{waits_for}}"})},
		}},
		{7, []sized{
			{6, lines("Posted receives", "short", "Posted receives without a matching message.",
				query{`zrlmpi_posted_receives{` + rank + `}`, "rank {{rank}}"})},
			{6, lines("Unexpected messages", "short", "Messages without a matching receive: the local program is behind. Their senders may be blocked.",
				query{`zrlmpi_unexpected_messages{` + rank + `}`, "rank {{rank}}"})},
			{6, lines("Pending sends", "short", "Sends that have started and are not acknowledged, and sends queued behind them.",
				query{`zrlmpi_in_flight_messages{` + peer + `}`, pair}, query{`zrlmpi_queued_sends{` + peer + `}`, pair + " queued"})},
			{6, lines("Packets in flight", "short", "Packets of the extended profile sent and not acknowledged. At the size of the window, the network or the peer is the limit.",
				query{`zrlmpi_in_flight_packets{` + peer + `}`, pair})},
		}},
	}}
}

func latency() row {
	by := func(direction string) []query {
		return []query{{quantile("0.5", "phase", direction), "{{phase}} p50"}, {quantile("0.9", "phase", direction), "{{phase}} p90"}, {quantile("0.99", "phase", direction), "{{phase}} p99"}}
	}
	ofPeer := func(direction, phase string) []query {
		return []query{{peerQuantile("0.5", direction, phase), pair + " p50"}, {peerQuantile("0.99", direction, phase), pair + " p99"}}
	}
	return row{"Handshake", []line{
		{9, []sized{
			{8, heat("Send duration", "Duration of sends, from posted to ended. Two bands are two kinds of messages or peers; a thin band at 100 ms and above is retransmissions.", heatOf("send", "total"))},
			{8, heat("SEND_REQUEST to CLEAR_TO_SEND", "Wait of senders for CLEAR_TO_SEND: a round trip, and the time until the peer's program has posted its receive.", heatOf("send", "clear"))},
			{8, heat("DATA to ACK", "From the last DATA to the ACK: the network and the peer's engine. A retransmission restarts it, so it excludes losses. It excludes the peer's program, except for synchronous sends of the extended profile.", heatOf("send", "ack"))},
		}},
		{9, []sized{
			{12, lines("Sends by phase", "s", "Quantiles of the phases of sends: clear is the wait for CLEAR_TO_SEND, data the transmission of the payload, ack the wait for ACK, total the whole send including its time in the queue.",
				by("send")...).logarithmic()},
			{12, lines("Receives by phase", "s", "Quantiles of the phases of receives: request is the wait of a posted receive for its message, data is from CLEAR_TO_SEND to the last DATA, total the whole receive.",
				by("receive")...).logarithmic()},
		}},
		{9, []sized{
			{8, lines("Send duration by kind of peer, p99", "s", "p99 of the duration of sends, by profile and kind of peer: FPGAs, upstream's CPU library, zrlmpid.",
				query{`histogram_quantile(0.99, sum by (profile, kind) (rate(zrlmpi_handshake_phase_seconds{` + rank + `, direction="send", phase="total"}` + over + `)))` +
					` or histogram_quantile(0.99, sum by (profile, kind, le) (rate(zrlmpi_handshake_phase_seconds_bucket{` + rank + `, direction="send", phase="total"}` + over + `)))`,
					"{{kind}}, {{profile}}"}).logarithmic()},
			{8, lines("Send duration by peer", "s", "Quantiles of the duration of sends, by peer. Native histograms only.", ofPeer("send", "total")...).logarithmic()},
			{8, lines("DATA to ACK by peer", "s", "Quantiles of the wait for ACK, by peer: the time of the network and the peer's engine. Native histograms only.", ofPeer("send", "ack")...).logarithmic()},
		}},
	}}
}

func throughput() row {
	return row{"Throughput", []line{
		{8, []sized{
			{8, lines("Messages by pair", "mps", "Messages that completed without an error, by pair and direction.",
				query{`sum by (instance, rank, peer, direction) (rate(zrlmpi_messages_total{` + peer + `}` + over + `))`, pair + " {{direction}}"})},
			{8, lines("Payload by pair", "Bps", "Payload of the messages that completed without an error, by pair and direction.",
				query{`sum by (instance, rank, peer, direction) (rate(zrlmpi_message_bytes_total{` + peer + `}` + over + `))`, pair + " {{direction}}"})},
			{8, lines("Mean message length", "bytes", "Payload per message. Compare latencies only of messages of similar length.",
				query{`sum by (direction) (rate(zrlmpi_message_bytes_total{` + peer + `}` + over + `)) / (sum by (direction) (rate(zrlmpi_messages_total{` + peer + `}` + over + `)) > 0)`, "{{direction}}"})},
		}},
		{8, []sized{
			{12, lines("Packets by type", "pps", "ZRLMPI packets by type and direction. Many SEND_REQUESTs with few CLEAR_TO_SENDs: peers do not receive.",
				query{`sum by (direction, type) (rate(zrlmpi_packets_total{` + peer + `}` + over + `))`, "{{direction}} {{type}}"})},
			{12, lines("Packet bytes by type", "Bps", "Bytes of those packets, including ZRLMPI headers, without those of UDP and IP.",
				query{`sum by (direction, type) (rate(zrlmpi_packet_bytes_total{` + peer + `}` + over + `))`, "{{direction}} {{type}}"})},
		}},
	}}
}

func collectives() row {
	calls := `sum by (collective, algorithm) (rate(zrlmpi_collectives_total{` + rank + `}` + over + `))`
	return row{"Collectives", []line{
		{8, []sized{
			{8, lines("Collective calls", "cps", "Collective calls started, per second. A call of all ranks counts once for each local rank of the daemons.",
				query{`sum by (collective) (rate(zrlmpi_collectives_total{` + rank + `}` + over + `))`, "{{collective}}"})},
			{8, lines("Share of calls by algorithm", "percentunit", "Algorithms of collective calls as a share of all calls, chosen by the table or forced by the configuration.",
				query{calls + ` / on() group_left() (sum(rate(zrlmpi_collectives_total{` + rank + `}` + over + `)) > 0)`, "{{collective}} by {{algorithm}}"}).stacked()},
			{8, lines("Collective failures", "cps", "Collective calls that ended with an error, per second; and communicators whose members have different settings and use the built-in table.",
				query{`sum by (instance, rank, collective, algorithm) (rate(zrlmpi_collective_failures_total{` + rank + `}` + over + `))`, "rank {{rank}}: {{collective}} by {{algorithm}}"},
				query{`rate(zrlmpi_collective_disagreements_total{` + rank + `}` + over + `)`, "rank {{rank}}: different settings"})},
		}},
	}}
}
