package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zrlmpi/zrlmpid/config"
)

// examinePorts checks that the ports of the local ranks are free, or held by the daemon.
func examinePorts(in *input) []Finding {
	var f findings
	held := 0
	for _, port := range in.Ports {
		switch {
		case port.Unknown != "":
			f.addUnknown("", "rank %d: %s %v: %s", port.Rank, port.Network, port.Addr, port.Unknown)
		case port.Held && in.heldByDaemon(&port):
			held++
		case port.Held && port.Holder == nil:
			f.addWrong(fmt.Sprintf("find it as root: ss -lnp --%s 'sport = :%d'; stop it, or change the port in "+
				"the rank map", port.Network, port.Addr.Port()),
				"rank %d: another process holds %s %v", port.Rank, port.Network, port.Addr)
		case port.Held:
			f.addWrong("stop it, or change the port in the rank map", "rank %d: process %d (%s) holds %s %v", port.Rank,
				port.Holder.PID, port.Holder.Name, port.Network, port.Addr)
		case in.status != nil:
			f.addWrong("compare the configuration with that of the daemon: zrlctl ranks; restart the daemon",
				"rank %d: the daemon runs, and does not hold %s %v", port.Rank, port.Network, port.Addr)
		}
	}
	if held > 0 {
		return f.orRight("held by the daemon, process %d", in.status.PID)
	}
	return f.orRight("free")
}

// heldByDaemon reports whether the daemon holds a port. If the holder is not visible, it is assumed to be the daemon,
// provided that the daemon runs the rank.
func (in *input) heldByDaemon(port *Port) bool {
	if in.status == nil {
		return false
	}
	if port.Holder != nil {
		return port.Holder.PID == in.status.PID
	}
	m := in.status.Member(port.Rank)
	return m != nil && m.Role != ""
}

// examineBuffer checks that sockets are granted the receive buffer that the configuration requests.
func examineBuffer(in *input) []Finding {
	var f findings
	requested := in.Plan.ReceiveBuffer
	if requested == 0 || !in.usesTransport(config.TransportUDP) {
		return f.orRight("no link uses UDP")
	}
	granted, of := in.Buffer.Value.Granted, "a socket of this user"
	if in.status != nil {
		granted, of = requested, "the daemon"
		for i := range in.status.Ranks {
			if r := &in.status.Ranks[i]; r.ReceiveBufferRequested > 0 {
				granted, requested = min(granted, r.ReceiveBuffer), max(requested, r.ReceiveBufferRequested)
			}
		}
	} else if why := in.Buffer.Unknown; why != "" {
		f.addUnknown("", "%s", why)
		return f
	}
	if granted < requested {
		f.addWrong(fmt.Sprintf("sysctl -w net.core.rmem_max=%d, or lower limits.receive_buffer", requested),
			"%s gets a receive buffer of %v of %v: bursts of large messages may be lost", of, config.Size(granted),
			config.Size(requested))
	}
	return f.orRight("%s gets %v", of, config.Size(granted))
}

// usesTransport reports whether at least one link uses the given transport.
func (in *input) usesTransport(t config.Transport) bool {
	return slices.ContainsFunc(in.Links, func(l Link) bool { return l.Transport == t })
}

// examineOffload checks that the kernel supports UDP segmentation and coalescing, and that it has not refused to
// segment packets.
func examineOffload(in *input) []Finding {
	var f findings
	if !in.usesTransport(config.TransportUDP) {
		return f.orRight("no link uses UDP")
	}
	if in.NoOffload {
		return f.orRight("disabled by limits.offload or the environment")
	}
	has := in.Facts.Offload
	if in.status != nil {
		used, disabled := false, false
		for i := range in.status.Ranks {
			rank := &in.status.Ranks[i]
			if rank.Offload == nil || rank.Offload.Disabled {
				disabled = disabled || rank.Offload != nil
				continue
			}
			used = true
			for _, refused := range rank.Offload.Refused {
				f.addWrong("switch checksum offload of the interface on (ethtool -K INTERFACE tx on); single datagrams "+
					"are sent meanwhile",
					"rank %d: the kernel refused segmentation to rank %d: %s", rank.Rank, refused.Peer, refused.Error)
			}
			has = Fact[Offload]{Value: Offload{rank.Offload.Segmentation, rank.Offload.Coalescing}}
		}
		if disabled && !used {
			return f.orRight("disabled by limits.offload, the environment, or faults of the ranks")
		}
	}
	switch {
	case has.Unknown != "":
		f.addUnknown("", "%s", has.Unknown)
	case !has.Value.Segmentation || !has.Value.Coalescing:
		f.addWrong("use Linux 5.0 or later; everything works without it, and long messages take more processor time",
			"the kernel does not support UDP segmentation (%v) or coalescing (%v)", has.Value.Segmentation,
			has.Value.Coalescing)
	}
	return f.orRight("segmentation and coalescing")
}

// examineXDP checks that the links that are configured to use AF_XDP can.
func examineXDP(in *input) []Finding {
	var f findings
	mustUse := func(rank int) bool {
		return slices.ContainsFunc(in.Links, func(l Link) bool { return l.Rank == rank && l.Path == config.PathXDP })
	}
	const how = "docs/operations.md#past-the-kernel lists the remedies; or set path: kernel"
	if in.status != nil {
		var used []string
		for i := range in.status.Ranks {
			rank := &in.status.Ranks[i]
			switch path := rank.Path; {
			case path == nil:
			case path.Error != "":
				f.addWrong(how, "rank %d: %s", rank.Rank, path.Error)
			default:
				used = append(used, fmt.Sprintf("rank %d: %s", rank.Rank, path.Text()))
			}
		}
		if len(used) == 0 {
			return f.orRight("no link uses it")
		}
		return f.orRight("%s", strings.Join(used, "; "))
	}
	if len(in.XDP) == 0 {
		return f.orRight("no link uses it")
	}
	var possible []string
	for i := range in.XDP {
		x := &in.XDP[i]
		if x.Problem != "" && !(x.Filtered && mustUse(x.Rank)) {
			f.addWrong(how, "rank %d: %s", x.Rank, x.Problem)
			continue
		}
		possible = append(possible, fmt.Sprintf("rank %d on %s, driver %s, receive queues: %d", x.Rank, x.Device, x.Driver,
			x.Queues))
	}
	return f.orRight("%s", strings.Join(possible, "; "))
}

// slowClocks lists the clocksources that take about a microsecond or more to read.
var slowClocks = []string{"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"}

// examineClock checks that reading the clock is fast. If some ranks are on other hosts, it also checks that the clock
// is synchronized, so that captures of these hosts can be compared.
func examineClock(in *input) []Finding {
	var f findings
	clock := in.Clock.Value
	if why := in.Clock.Unknown; why != "" {
		f.addUnknown("", "%s", why)
		return f
	}
	if slices.Contains(slowClocks, clock.Source) {
		f.addWrong("look for tsc in /sys/devices/system/clocksource/clocksource0/available_clocksource; the kernel's "+
			"log says why it was not chosen",
			"the clocksource is %s: each reading takes about a microsecond, and every packet needs some", clock.Source)
	}
	switch {
	case !slices.ContainsFunc(in.Paths, func(p Path) bool { return !in.isLocalAddress(p.To) }):
	case clock.Synchronized.Unknown != "":
		f.addUnknown("", "whether the clock is synchronized: %s", clock.Synchronized.Unknown)
	case !clock.Synchronized.Value:
		f.addWrong("run chrony or systemd-timesyncd, if captures or logs of several hosts are to be compared",
			"the clock is not synchronized with a time server: times of different hosts do not agree")
	default:
		return f.orRight("%s, synchronized", clock.Source)
	}
	return f.orRight("%s", clock.Source)
}

// A daemon opens about filesBase files. For each link it opens filesStream more if the link uses a stream, or
// filesShared if it uses shared memory: connection, event descriptors, memory.
const (
	filesBase   = 64
	filesStream = 2
	filesShared = 6
)

// examineFiles checks that the daemon may open as many files as its links need.
func examineFiles(in *input) []Finding {
	var f findings
	if why := in.Files.Unknown; why != "" {
		f.addUnknown("", "%s", why)
		return f
	}
	need := uint64(filesBase + 2*len(in.localRanks()))
	for i := range in.Links {
		switch in.Links[i].Transport {
		case config.TransportTCP:
			need += filesStream
		case config.TransportSHM:
			need += filesShared
		}
	}
	files := in.Files.Value
	const raise = "raise it: LimitNOFILE of the service, or ulimit -n"
	switch {
	case files.Limit < need:
		f.addWrong(raise, "a process may have %d files open, and the links of this configuration need about %d",
			files.Limit, need)
	case files.Open > 0 && uint64(files.Open) > files.Limit/5*4:
		f.addWrong(raise, "the daemon has %d files open of at most %d", files.Open, files.Limit)
	}
	return f.orRight("%d, and the links need about %d", files.Limit, need)
}

// lossThreshold is the reciprocal of the loss rate above which losses are reported: more than one lost packet in
// lossThreshold. Lower rates are normal on an interface that has run for long.
const lossThreshold = 10_000

// examineInterfaceDrops checks the counters of the interfaces that the local ranks use.
func examineInterfaceDrops(in *input) []Finding {
	if why := in.Interfaces.Unknown; why != "" {
		return interfacesUnknown(why)
	}
	var f findings
	for _, i := range in.usedInterfaces() {
		counters := i.Counters
		if counters.ReceiveErrors*lossThreshold > counters.Received {
			f.addWrong(fmt.Sprintf("ip -s -s link show %s has the kinds; corrupt packets: cable or transceiver; missed: "+
				"raise the ring (ethtool -G %s rx N)", i.Name, i.Name),
				"interface %s has lost %d of %d received packets", i.Name, counters.ReceiveErrors,
				counters.Received+counters.ReceiveErrors)
		}
		if counters.SendErrors*lossThreshold > counters.Sent {
			f.addWrong(fmt.Sprintf("ip -s -s link show %s and tc -s qdisc show dev %s have the kinds; raise txqueuelen, "+
				"or pace long messages (pace)", i.Name, i.Name),
				"interface %s has lost %d of %d packets to send", i.Name, counters.SendErrors, counters.Sent+counters.SendErrors)
		}
	}
	return f.orRight("fewer than one in %d", lossThreshold)
}

// examineSocketDrops checks that the sockets of the ranks have dropped no datagrams.
func examineSocketDrops(in *input) []Finding {
	var f findings
	for _, p := range in.Ports {
		if p.Drops > 0 && in.heldByDaemon(&p) {
			f.addWrong("raise limits.receive_buffer and net.core.rmem_max, or give the daemon more processor time",
				"rank %d: its receive buffer had no room for %s", p.Rank, plural(int(p.Drops), "datagram"))
		}
	}
	if in.status == nil {
		return noDaemon()
	}
	return f.orRight("none")
}
