package main

func network() row {
	return row{"Network", []line{
		{8, []sized{
			{8, lines("Packets sent again", "pps", "Repeats by pair. A DATA message of a handshake is one, whatever its length.",
				query{`rate(zrlmpi_retransmissions_total{` + peer + `}` + over + `)`, pair})},
			{8, lines("Share of repeats", "percentunit", "Repeats among the packets sent, by pair: about the odds that a packet is lost, on the way there or back.",
				query{`sum by (instance, rank, peer) (rate(zrlmpi_retransmissions_total{` + peer + `}` + over + `)) / (sum by (instance, rank, peer) (rate(zrlmpi_packets_total{` + peer + `, direction="out"}` + over + `)) > 0)`, pair})},
			{8, lines("Round trip", "s", "Smoothed round trip of a packet and its acknowledgement; extended profile only.",
				query{`zrlmpi_round_trip_seconds{` + peer + `}`, pair}).logarithmic()},
		}},
		{8, []sized{
			{8, lines("Dropped, by reason", "pps", "What arrived and was not used. duplicate and stale follow from repeats; unknown_address, source_rank and destination from rank maps that differ; start_mark, type, length and checksum from other profiles or damage.",
				query{`sum by (reason) (rate(zrlmpi_drops_total{` + rank + `, peer=~"$peer|unknown"}` + over + `))`, "{{reason}}"}).stacked()},
			{8, lines("Events", "cps", "What else is worth knowing: repeats, lost ACKs, requests that crossed, full windows, peers that came back.",
				query{`sum by (event) (rate(zrlmpi_events_total{` + peer + `}` + over + `))`, "{{event}}"}).stacked()},
			{8, lines("Failures", "cps", "Messages that ended with an error, and messages or links given up because a peer did not answer. What a program cancels has failed as well.",
				query{`sum by (instance, rank, peer) (rate(zrlmpi_message_failures_total{` + peer + `}` + over + `))`, pair + " failed"},
				query{`sum by (instance, rank, peer) (rate(zrlmpi_give_ups_total{` + peer + `}` + over + `))`, pair + " given up"})},
		}},
		{7, []sized{
			{8, lines("Dropped by sockets", "pps", "Datagrams for which a rank's UDP socket had no room. Each is a loss that a larger buffer spares; Linux only.",
				query{`rate(zrlmpi_socket_drops_total{` + rank + `}` + over + `)`, "rank {{rank}}"})},
			{8, table("Receive buffers", "bytes", "What the kernel has granted each rank's UDP socket: limits.receive_buffer, or net.core.rmem_max if that is less.",
				`zrlmpi_socket_buffer_bytes{`+rank+`}`, column{"instance", "Daemon"}, column{"rank", "Rank"}, column{value, "Buffer"})},
			{8, states("Offload", "What the kernel does for each rank's UDP socket: batches moves many datagrams by a system call, segmentation cuts long messages, coalescing joins them again.", "off", "on", "orange",
				query{`zrlmpi_offload_enabled{` + rank + `}`, "rank {{rank}} {{feature}}"})},
		}},
	}}
}

func nodes() row {
	return row{"Programs and kernels", []line{
		{7, []sized{
			{12, states("Kernels of stand-ins", "Whether the kernel of each stand-in runs. One that has ended or failed answers nobody until zrlmpid is restarted.", "down", "up", "red",
				query{`zrlmpi_kernel_up{` + rank + `}`, "rank {{rank}} {{kernel}}"})},
			{12, lines("Attached programs", "short", "Programs that have a rank of the daemon.",
				query{`zrlmpi_attached_programs{` + rank + `}`, "rank {{rank}}"})},
		}},
	}}
}

func process() row {
	return row{"Daemon", []line{
		{7, []sized{
			{8, lines("CPU", "percentunit", "Processor time of the daemon; 100 % is one core. Whoever waits for messages looks for them, so that a busy rank takes a core.",
				query{`rate(process_cpu_seconds_total{` + daemon + `}` + over + `)`, "{{instance}}"})},
			{8, lines("Memory", "bytes", "Memory of the process, and what of it is Go's heap. Unexpected messages of the extended profile take most of it, if there are many.",
				query{`process_resident_memory_bytes{` + daemon + `}`, "{{instance}} resident"}, query{`go_memstats_heap_inuse_bytes{` + daemon + `}`, "{{instance}} heap"})},
			{8, lines("Goroutines and files", "short", "Goroutines and open files of the daemon. If they only ever climb, something leaks.",
				query{`go_goroutines{` + daemon + `}`, "{{instance}} goroutines"}, query{`process_open_fds{` + daemon + `}`, "{{instance}} files"})},
		}},
		{7, []sized{
			{8, table("Builds", "none", "Which zrlmpid runs where. All of a cluster should be the same.",
				`zrlmpi_build_info{instance=~"$instance"}`, column{"instance", "Daemon"}, column{"version", "Version"}, column{"revision", "Revision"}, column{"goversion", "Go"})},
			{4, table("Up for", "s", "How long each daemon has been running.",
				`time() - process_start_time_seconds{`+daemon+`}`, column{"instance", "Daemon"}, column{value, "Time"})},
			{4, table("Configuration loaded", "s", "How long ago the configuration was loaded with success for the last time.",
				`time() - zrlmpi_config_last_reload_success_timestamp_seconds{instance=~"$instance"}`, column{"instance", "Daemon"}, column{value, "Ago"})},
			{4, states("Last reload", "Whether the last attempt to load the configuration succeeded. If it failed, the daemon goes on with the one before.", "failed", "good", "red",
				query{`zrlmpi_config_last_reload_successful{instance=~"$instance"}`, "{{instance}}"})},
			{4, lines("Log lines lost", "cps", "Log lines lost because the log was read too slowly, or could not be written.",
				query{`rate(zrlmpi_log_lines_lost_total{instance=~"$instance"}` + over + `)`, "{{instance}}"})},
		}},
	}}
}
