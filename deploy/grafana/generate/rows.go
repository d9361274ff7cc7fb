package main

// What the variables choose: of a daemon, of a local rank, and of its peers.
const (
	daemon = `job="zrlmpid", instance=~"$instance"`
	rank   = `instance=~"$instance", rank=~"$rank"`
	peer   = rank + `, peer=~"$peer"`
	// over is the span of rates: Grafana makes it long enough for the scrape interval.
	over = `[$__rate_interval]`
)

// pair is the legend of what a rank does with a peer.
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
			{4, number("Daemons", "none", "How many of the daemons chosen answer Prometheus. Red: none does.",
				`sum(up{`+daemon+`})`, level{-1, "red"}, level{1, "green"})},
			{4, number("Messages", "mps", "Messages that ended well, sent and received, a second.",
				`sum(rate(zrlmpi_messages_total{`+peer+`}`+over+`))`)},
			{4, number("Payload", "Bps", "Payload of those messages, without headers and repeats.",
				`sum(rate(zrlmpi_message_bytes_total{`+peer+`}`+over+`))`)},
			{4, number("Longest wait", "s", "For how long the oldest message waits that was announced or is moving. Receives that no message has come for are left out: they may wait for as long as the program likes.",
				`max(zrlmpi_oldest_wait_seconds{`+peer+`, waits_for!="send_request"}) or vector(0)`, level{10, "orange"}, level{60, "red"})},
			{4, number("Repeats", "percentunit", "Of the packets sent, how many were sent again. More than 1 % is loss worth looking into.",
				`sum(rate(zrlmpi_retransmissions_total{`+peer+`}`+over+`)) / sum(rate(zrlmpi_packets_total{`+peer+`, direction="out"}`+over+`))`,
				level{0.001, "orange"}, level{0.01, "red"})},
			{4, number("Given up", "short", "Messages and links given up in the time range shown, because a peer did not answer.",
				`sum(increase(zrlmpi_give_ups_total{`+peer+`}[$__range]))`, level{0.5, "red"}).once()},
		}},
		{7, []sized{
			{24, table("Alerts that fire", "none", "What Prometheus complains about now, by the rules of deploy/prometheus. Each alert has a section of docs/operations.md. Empty is good.",
				`ALERTS{alertstate="firing", alertname=~"Zrlmpi.*"}`,
				column{"severity", "Severity"}, column{"alertname", "Alert"}, column{"instance", "Daemon"}, column{"rank", "Rank"},
				column{"peer", "Peer"}, column{"direction", "Direction"}, column{"waits_for", "Waits for"}, column{"reason", "Reason"}, column{"kernel", "Kernel"})},
		}},
	}}
}

func waits() row {
	return row{"Who waits for whom", []line{
		{8, []sized{
			{12, table("Oldest message of each pair", "s", "The message that has waited longest, by rank, peer and direction. send_request: a receive for which no message has come, which may be how the program works. clear_to_send: the peer has posted no receive. data, ack: the message is on its way. held_back: behind others.",
				`sort_desc(zrlmpi_oldest_wait_seconds{`+rank+`, peer=~"$peer|any"})`,
				column{"instance", "Daemon"}, column{"rank", "Rank"}, column{"peer", "Waits for rank"}, column{"direction", "To"}, column{"waits_for", "Packet"}, column{value, "Since"}).
				coloured("Since", level{10, "orange"}, level{60, "red"})},
			{12, lines("Longest waits", "s", "The same over time, without receives that no message has come for. A line that climbs at 45 degrees is one message that does not get on; teeth are many that do.",
				query{`zrlmpi_oldest_wait_seconds{` + rank + `, peer=~"$peer|any", waits_for!="send_request"}`, pair + " {{waits_for}}"})},
		}},
		{7, []sized{
			{6, lines("Posted receives", "short", "Receives that no message has matched. A program that keeps many posted is quick to answer.",
				query{`zrlmpi_posted_receives{` + rank + `}`, "rank {{rank}}"})},
			{6, lines("Unexpected messages", "short", "Messages that no receive has matched: the local program is behind. Their senders may be blocked.",
				query{`zrlmpi_unexpected_messages{` + rank + `}`, "rank {{rank}}"})},
			{6, lines("Sends under way", "short", "Sends that have begun and are not acknowledged, and those behind them of which nothing was sent.",
				query{`zrlmpi_in_flight_messages{` + peer + `}`, pair}, query{`zrlmpi_queued_sends{` + peer + `}`, pair + " queued"})},
			{6, lines("Packets in flight", "short", "Packets of the extended profile that are not acknowledged. At the size of the window, the network or the peer is the limit.",
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
			{8, heat("Sends, in total", "How long sends took, from when they were posted until they ended. Two bands are two kinds of messages or peers; a thin one at 100 ms and above is repeats.", heatOf("send", "total"))},
			{8, heat("SEND_REQUEST to CLEAR_TO_SEND", "How long peers let a sender wait: a round trip, and the time until their program has posted its receive.", heatOf("send", "clear"))},
			{8, heat("DATA to ACK", "From the last DATA to the ACK: the network and the peer's engine. A repeat begins anew, so that loss is not in it; nothing that the peer's program does is in it either, but for synchronous sends of the extended profile.", heatOf("send", "ack"))},
		}},
		{9, []sized{
			{12, lines("Sends by phase", "s", "Quantiles of the phases of sends: clear is the wait for CLEAR_TO_SEND, data hands the payload to the network, ack waits for ACK, total is all of it and the time in the queue.",
				by("send")...).logarithmic()},
			{12, lines("Receives by phase", "s", "Quantiles of the phases of receives: request is the wait of a posted receive for its message, data is from CLEAR_TO_SEND to the last DATA, total is all of it.",
				by("receive")...).logarithmic()},
		}},
		{9, []sized{
			{8, lines("Sends by kind of peer, p99", "s", "p99 of sends in total, by profile and kind of peer: FPGAs, upstream's CPU library, zrlmpids.",
				query{`histogram_quantile(0.99, sum by (profile, kind) (rate(zrlmpi_handshake_phase_seconds{` + rank + `, direction="send", phase="total"}` + over + `)))` +
					` or histogram_quantile(0.99, sum by (profile, kind, le) (rate(zrlmpi_handshake_phase_seconds_bucket{` + rank + `, direction="send", phase="total"}` + over + `)))`,
					"{{kind}}, {{profile}}"}).logarithmic()},
			{8, lines("Sends by peer", "s", "Quantiles of sends in total, by peer: which one is slow. Native histograms only.", ofPeer("send", "total")...).logarithmic()},
			{8, lines("DATA to ACK by peer", "s", "Quantiles of the wait for ACK, by peer: whose network or engine is slow. Native histograms only.", ofPeer("send", "ack")...).logarithmic()},
		}},
	}}
}

func throughput() row {
	return row{"Throughput", []line{
		{8, []sized{
			{8, lines("Messages of each pair", "mps", "Messages that ended well, by pair and direction.",
				query{`sum by (instance, rank, peer, direction) (rate(zrlmpi_messages_total{` + peer + `}` + over + `))`, pair + " {{direction}}"})},
			{8, lines("Payload of each pair", "Bps", "Payload of the messages that ended well, by pair and direction.",
				query{`sum by (instance, rank, peer, direction) (rate(zrlmpi_message_bytes_total{` + peer + `}` + over + `))`, pair + " {{direction}}"})},
			{8, lines("Mean length of messages", "bytes", "Payload by message. Latencies are worth comparing only where messages are equally long.",
				query{`sum by (direction) (rate(zrlmpi_message_bytes_total{` + peer + `}` + over + `)) / (sum by (direction) (rate(zrlmpi_messages_total{` + peer + `}` + over + `)) > 0)`, "{{direction}}"})},
		}},
		{8, []sized{
			{12, lines("Packets by type", "pps", "Packets of ZRLMPI by type and direction. Many SEND_REQUESTs for few CLEAR_TO_SENDs are peers that do not receive.",
				query{`sum by (direction, type) (rate(zrlmpi_packets_total{` + peer + `}` + over + `))`, "{{direction}} {{type}}"})},
			{12, lines("Bytes of packets", "Bps", "Bytes of those packets, with ZRLMPI's headers and without those of UDP and IP.",
				query{`sum by (direction, type) (rate(zrlmpi_packet_bytes_total{` + peer + `}` + over + `))`, "{{direction}} {{type}}"})},
		}},
	}}
}

func collectives() row {
	calls := `sum by (collective, algorithm) (rate(zrlmpi_collectives_total{` + rank + `}` + over + `))`
	return row{"Collectives", []line{
		{8, []sized{
			{8, lines("Collective calls", "cps", "Collective calls that ranks begin, a second. A call of all ranks counts once for each rank that the daemons run.",
				query{`sum by (collective) (rate(zrlmpi_collectives_total{` + rank + `}` + over + `))`, "{{collective}}"})},
			{8, lines("Share of calls by algorithm", "percentunit", "Which algorithms carry out collective calls, as parts of all. The table of the configuration chooses them, or somebody forces them.",
				query{calls + ` / on() group_left() (sum(rate(zrlmpi_collectives_total{` + rank + `}` + over + `)) > 0)`, "{{collective}} by {{algorithm}}"}).stacked()},
			{8, lines("Collective failures", "cps", "Collective calls that ended with an error, a second; and communicators whose ranks are not configured alike, which then go by the built-in table.",
				query{`sum by (instance, rank, collective, algorithm) (rate(zrlmpi_collective_failures_total{` + rank + `}` + over + `))`, "rank {{rank}}: {{collective}} by {{algorithm}}"},
				query{`rate(zrlmpi_collective_disagreements_total{` + rank + `}` + over + `)`, "rank {{rank}}: configured differently"})},
		}},
	}}
}
