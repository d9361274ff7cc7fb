package main

func network() row {
	return row{"Network", []line{
		{8, []sized{
			{8, lines("Retransmissions by pair", "pps", "Retransmitted packets by pair. A DATA message of the handshake counts as one, whatever its length.",
				query{`rate(zrlmpi_retransmissions_total{` + peer + `}` + over + `)`, pair})},
			{8, lines("Retransmission ratio by pair", "percentunit", "Retransmissions as a ratio of the packets sent, by pair: roughly the probability of a loss in either direction.",
				query{`sum by (instance, rank, peer) (rate(zrlmpi_retransmissions_total{` + peer + `}` + over + `)) / (sum by (instance, rank, peer) (rate(zrlmpi_packets_total{` + peer + `, direction="out"}` + over + `)) > 0)`, pair})},
			{8, lines("Round trip", "s", "Smoothed round-trip time; extended profile only.",
				query{`zrlmpi_round_trip_seconds{` + peer + `}`, pair}).logarithmic()},
		}},
		{8, []sized{
			{6, lines("Packets dropped, by reason", "pps", "Packets dropped. duplicate and stale: effects of retransmissions. unknown_address, source_rank, destination: different rank maps. start_mark, type, length, checksum: different profiles or corrupt packets.",
				query{`sum by (reason) (rate(zrlmpi_drops_total{` + rank + `, peer=~"$peer|unknown"}` + over + `))`, "{{reason}}"}).stacked()},
			{6, lines("Protocol events", "cps", "Protocol events: retransmissions, lost ACKs, crossed requests, full windows, restarted peers.",
				query{`sum by (event) (rate(zrlmpi_events_total{` + peer + `}` + over + `))`, "{{event}}"}).stacked()},
			{6, lines("Failures", "cps", "Messages that ended with an error, including cancelled ones, and messages or links that timed out because a peer did not answer.",
				query{`sum by (instance, rank, peer) (rate(zrlmpi_message_failures_total{` + peer + `}` + over + `))`, pair + " failed"},
				query{`sum by (instance, rank, peer) (rate(zrlmpi_peer_unreachable_total{` + peer + `}` + over + `))`, pair + " unreachable"})},
			{6, states("Peers that answer", "Peers that did not answer in time, until their next packet arrives.", "no", "yes", "red",
				query{`zrlmpi_peer_up{` + peer + `}`, pair})},
		}},
		{7, []sized{
			{8, lines("Kernel drops: receive buffer full", "pps", "Datagrams dropped by the kernel because the receive buffer of the rank's UDP socket was full. Raise the buffer. Linux only.",
				query{`rate(zrlmpi_socket_drops_total{` + rank + `}` + over + `)`, "rank {{rank}}"})},
			{8, table("Receive buffers", "bytes", "Receive buffer of each rank's UDP socket: limits.receive_buffer, or net.core.rmem_max if that is lower.",
				`zrlmpi_socket_buffer_bytes{`+rank+`}`, column{"instance", "Daemon"}, column{"rank", "Rank"}, column{value, "Buffer"})},
			{8, states("Offload feature enabled", "Offload features of each rank's UDP socket. batches: a system call moves many datagrams. segmentation: the kernel cuts long messages into datagrams. coalescing: the kernel joins received datagrams.", "off", "on", "orange",
				query{`zrlmpi_offload_enabled{` + rank + `}`, "rank {{rank}} {{feature}}"})},
		}},
	}}
}

func nodes() row {
	return row{"Programs and kernels", []line{
		{7, []sized{
			{12, states("Kernels of stand-ins", "State of the kernel of each stand-in. After its end or failure the rank does not answer until zrlmpid is restarted.", "down", "up", "red",
				query{`zrlmpi_kernel_up{` + rank + `}`, "rank {{rank}} {{kernel}}"})},
			{12, lines("Attached programs", "short", "Programs attached to each rank.",
				query{`zrlmpi_attached_programs{` + rank + `}`, "rank {{rank}}"})},
		}},
	}}
}

func process() row {
	return row{"Daemon", []line{
		{7, []sized{
			{8, lines("CPU", "percentunit", "CPU time of the daemon; 100 % is one core. Waiting ranks poll, so a busy rank uses a core.",
				query{`rate(process_cpu_seconds_total{` + daemon + `}` + over + `)`, "{{instance}}"})},
			{8, lines("Memory", "bytes", "Resident memory of the process, and Go's heap. Many unexpected messages of the extended profile need most of it.",
				query{`process_resident_memory_bytes{` + daemon + `}`, "{{instance}} resident"}, query{`go_memstats_heap_inuse_bytes{` + daemon + `}`, "{{instance}} heap"})},
			{8, lines("Goroutines and open files", "short", "Goroutines and open files of the daemon. A steady rise is a leak.",
				query{`go_goroutines{` + daemon + `}`, "{{instance}} goroutines"}, query{`process_open_fds{` + daemon + `}`, "{{instance}} files"})},
		}},
		{7, []sized{
			{8, table("Versions", "none", "Version of each daemon. All daemons of a cluster should have the same.",
				`zrlmpi_build_info{instance=~"$instance"}`, column{"instance", "Daemon"}, column{"version", "Version"}, column{"revision", "Revision"}, column{"goversion", "Go"})},
			{4, table("Uptime", "s", "Time since the start of each daemon.",
				`time() - process_start_time_seconds{`+daemon+`}`, column{"instance", "Daemon"}, column{value, "Uptime"})},
			{4, table("Configuration loaded", "s", "Time since the last successful load of the configuration.",
				`time() - zrlmpi_config_last_reload_success_timestamp_seconds{instance=~"$instance"}`, column{"instance", "Daemon"}, column{value, "Age"})},
			{4, states("Last reload", "Result of the last load of the configuration. After a failure the previous configuration stays in effect.", "failed", "ok", "red",
				query{`zrlmpi_config_last_reload_successful{instance=~"$instance"}`, "{{instance}}"})},
			{4, lines("Log lines lost", "cps", "Log lines lost because the log was full or could not be written.",
				query{`rate(zrlmpi_log_lines_lost_total{instance=~"$instance"}` + over + `)`, "{{instance}}"})},
		}},
		{7, []sized{
			{12, lines("Access denied", "cps", "Programs and requests refused because of their user, by socket.",
				query{`rate(zrlmpi_access_denied_total{instance=~"$instance"}` + over + `)`, "{{instance}} {{socket}}"})},
			{12, lines("Web configurations refused", "cps", "Changes of the web configuration, its certificate, key or client authority that were invalid. The previous ones stay in use.",
				query{`rate(zrlmpi_web_config_failures_total{instance=~"$instance"}` + over + `)`, "{{instance}}"})},
		}},
	}}
}
