package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/internal/jobs"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/bindfault"
)

// EnvAddress is the environment variable for the IP address of this host's ranks of a job. Its value is the address, or
// a prefix that contains it, such as 10.1.0.0/16. The default is the source address of packets to other networks, or a
// loopback address if there is no route.
const EnvAddress = "ZRLMPI_ADDRESS"

// EnvUnexpected is the environment variable that sets limits.unexpected for a job without a configuration.
const EnvUnexpected = "ZRLMPI_UNEXPECTED"

// EnvFPGATimeout is the environment variable for the time after which a job's send fails if its destination is an FPGA
// that has never sent a packet, such as 90s. The default, 0s, means never.
const EnvFPGATimeout = "ZRLMPI_FPGA_TIMEOUT"

// fpgaTimeout returns the value of EnvFPGATimeout.
func fpgaTimeout() (time.Duration, error) {
	text := os.Getenv(EnvFPGATimeout)
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%s=%.40q is not a time: give one with its unit, as in 90s, or unset it", EnvFPGATimeout,
			text)
	}
	return d, nil
}

// Exchange is the interface of a launcher through which the processes of a job find each other.
type Exchange interface {
	// Name is the name that the launcher has given to the job.
	Name() string
	Rank() int
	Size() int
	// Put sets the value of a key. After the next Barrier, all processes can read it with Get.
	Put(ctx context.Context, key, value string) error
	Get(ctx context.Context, key string) (string, error)
	Barrier(ctx context.Context) error
	// Finalize requests that the launcher no longer wait for the process.
	Finalize(ctx context.Context) error
}

// Join makes this process a rank of a job started by a launcher, and returns the rank's running engine. It returns when
// all processes of the job have called it. Closing the engine finalizes the exchange.
//
// If path is empty, the processes are all the ranks. They speak the extended profile, through shared memory within a
// host. Otherwise path is a configuration, and the processes are the ranks that JobRanks returns, in this order, at
// their configured addresses; the remaining ranks are FPGAs, or whatever else is configured.
func Join(ctx context.Context, x Exchange, path string) (mpe.Device, error) {
	if path != "" {
		return joinConfigured(ctx, x, path)
	}
	ip, err := localAddress(os.Getenv(EnvAddress))
	if err != nil {
		return nil, err
	}
	// The socket reserves the port while the rank runs, even if UDP is not in use.
	socket, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, 0)))
	if err != nil {
		return nil, fmt.Errorf("a port for rank %d of the job: %w", x.Rank(), err)
	}
	d, err := join(ctx, x, localLocation(x, socket.LocalAddr().(*net.UDPAddr).AddrPort()), socket)
	if err != nil {
		socket.Close()
		return nil, err
	}
	return d, nil
}

// JobRanks returns the ranks of a configuration that run as processes of a job, in rank order: software ranks that are
// not stand-ins.
func JobRanks(cfg *config.Config) (ranks []int) {
	for _, r := range cfg.Ranks {
		if r.Peer == config.PeerSoftware && r.Run != config.RunStandin {
			ranks = append(ranks, r.Rank)
		}
	}
	slices.Sort(ranks)
	return ranks
}

// CheckAddresses checks that the addresses of ranks can be bound, and releases them again. The error is a
// *bindfault.ListenError, which names the process that holds a port or lists the addresses of this host.
func CheckAddresses(cfg *config.Config, ranks []int) error {
	m, err := RankMap(cfg)
	if err != nil {
		return err
	}
	for _, rank := range ranks {
		socket, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(m.Addr(rank)))
		if err != nil {
			return bindfault.New("udp", rank, m, err)
		}
		socket.Close()
	}
	return nil
}

// joinConfigured implements Join with a configuration.
func joinConfigured(ctx context.Context, x Exchange, path string) (mpe.Device, error) {
	cfg, err := config.Load(path)
	if err != nil {
		return nil, err
	}
	ranks := JobRanks(cfg)
	if len(ranks) != x.Size() {
		return nil, fmt.Errorf("%s has %d ranks for programs %v, and the job has %d processes: start as many as "+
			"there are ranks", path, len(ranks), ranks, x.Size())
	}
	rank := ranks[x.Rank()]
	m, err := RankMap(cfg)
	if err != nil {
		return nil, err
	}
	// All processes must use the same list of ranks, or messages would go to the wrong ranks.
	if err := x.Put(ctx, ranksKey(x.Rank()), ranksDigest(cfg)); err != nil {
		return nil, err
	}
	own := localLocation(x, m.Addr(rank))
	places, err := exchangeLocations(ctx, x, own)
	if err != nil {
		return nil, err
	}
	process, err := own.newJobProcess(x, places, nil)
	if err != nil {
		return nil, err
	}
	cfg.Ranks = withExtendedLinks(cfg, ranks)
	process.ranks = ranks
	d, err := open(cfg, rank, nil, process)
	if err != nil {
		return nil, err
	}
	if err := checkSameRanks(ctx, x, path, rank); err != nil {
		return nil, errors.Join(err, d.Close(context.WithoutCancel(ctx)))
	}
	return newJobDevice(d, x, nil, ranks), nil
}

// withExtendedLinks returns the ranks of a configuration. It sets the extended profile for links among the ranks of the
// job whose profile is not configured.
func withExtendedLinks(cfg *config.Config, job []int) []config.Rank {
	if cfg.Defaults.Profile != nil {
		return cfg.Ranks
	}
	return cfg.RanksWithLinks(job, func(l *config.LinkOptions) {
		if l.Profile == nil {
			l.Profile = new(config.Profile(protocol.Extended))
		}
	})
}

func ranksKey(process int) string { return fmt.Sprintf("zrlmpi-ranks-%d", process) }

// ranksDigest returns a digest of all ranks' addresses and kinds.
func ranksDigest(cfg *config.Config) string {
	h := sha256.New()
	for rank := range cfg.Ranks {
		r := cfg.Rank(rank)
		fmt.Fprintln(h, r.Address, r.Peer)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// checkSameRanks waits until all processes have opened their ranks, and compares this process's ranks with the first
// process's.
func checkSameRanks(ctx context.Context, x Exchange, path string, rank int) error {
	if err := x.Barrier(ctx); err != nil {
		return err
	}
	var digests [2]string
	for i, process := range []int{0, x.Rank()} {
		var err error
		if digests[i], err = x.Get(ctx, ranksKey(process)); err != nil {
			return err
		}
	}
	if digests[0] != digests[1] {
		return fmt.Errorf("%s has other ranks or addresses for rank %d than for the first process of the job: all of "+
			"its hosts need the same file", path, rank)
	}
	return nil
}

// location describes where a process of a job runs.
type location struct {
	addr netip.AddrPort
	// host identifies a host, or a container on it. Shared memory and loopback addresses work only within it.
	host string
	// processorList lists the processors that the process may use, as returned by allowedProcessors.
	processorList string
	// directory is the path of the job's directory on this host, which either this process proposes or the launcher has
	// supplied. If it is empty, directoryErr is the reason.
	directory    string
	directoryErr error
}

// localLocation returns the location of this process.
func localLocation(x Exchange, addr netip.AddrPort) location {
	p := location{addr: addr, host: hostIdentity(), processorList: allowedProcessors(),
		directory: jobs.InheritedDirectory(x.Name(), os.Getenv)}
	if p.directory == "" {
		p.directory, p.directoryErr = jobs.Propose(x.Name())
	}
	if len(p.String()) > maxLocationLen {
		p.directoryErr = fmt.Errorf("the path %s is too long for the launcher: set XDG_RUNTIME_DIR to a shorter one",
			p.directory)
		p.directory = ""
	}
	return p
}

// jobProcess describes the process of a job.
type jobProcess struct {
	name string // name of the job
	// socket is a socket already bound to the rank's address, nil if the configuration sets the port.
	socket *net.UDPConn
	// processors is the number of processors available to the job's processes on this host, or 0 if unknown.
	processors int
	// directory is the job's directory on this host. If it is empty, directoryErr is the reason.
	directory    string
	directoryErr error
	// ranks holds the ranks of the job's processes.
	ranks []int
}

// maxLocationLen is the maximum length of an encoded location. Launchers accept values of up to 1024 bytes.
const maxLocationLen = 1000

// jobVersion is the version of the encoding, which must be the same for all ranks of a job.
const jobVersion = "zrlmpi3"

// String returns the entry by which other processes of the job learn the location. The launcher passes it on as text.
func (p location) String() string {
	return strings.Join([]string{jobVersion, p.addr.String(), p.host, p.processorList, url.QueryEscape(p.directory)}, ";")
}

// parseLocation parses the result of String. It is strict, because another version may have written the text.
func parseLocation(text string) (location, error) {
	fields := strings.Split(text, ";")
	if len(fields) != 5 || fields[0] != jobVersion {
		return location{}, fmt.Errorf("its entry is %.80q, which this version cannot read: all programs of a job must "+
			"use the same version of zrlmpi", text)
	}
	addr, err := netip.ParseAddrPort(fields[1])
	if err != nil {
		return location{}, err
	}
	directory, err := url.QueryUnescape(fields[4])
	return location{addr: addr, host: fields[2], processorList: fields[3], directory: directory}, err
}

func locationKey(process int) string { return fmt.Sprintf("zrlmpi-place-%d", process) }

// exchangeLocations waits for all processes, and returns their locations in process order.
func exchangeLocations(ctx context.Context, x Exchange, own location) ([]location, error) {
	if err := x.Put(ctx, locationKey(x.Rank()), own.String()); err != nil {
		return nil, err
	}
	if err := x.Barrier(ctx); err != nil {
		return nil, err
	}
	places := make([]location, x.Size())
	for process := range places {
		text, err := x.Get(ctx, locationKey(process))
		if err == nil {
			places[process], err = parseLocation(text)
		}
		if err != nil {
			return nil, fmt.Errorf("process %d of the job: %w", process, err)
		}
	}
	return places, nil
}

// sharedProcessors returns the number of processors available to the processes on the same host as p, or 0 if unknown.
func (p location) sharedProcessors(places []location) (int, error) {
	var lists []string
	for _, q := range places {
		if q.host == p.host {
			lists = append(lists, q.processorList)
		}
	}
	n, err := countProcessors(lists)
	if err != nil {
		return 0, fmt.Errorf("a process of the job on %s: %w", p.host, err)
	}
	return n, nil
}

// newJobProcess describes this process, which runs at location p.
func (p location) newJobProcess(x Exchange, places []location, socket *net.UDPConn) (*jobProcess, error) {
	processors, err := p.sharedProcessors(places)
	if err != nil {
		return nil, err
	}
	j := &jobProcess{name: x.Name(), socket: socket, processors: processors, directoryErr: p.directoryErr}
	j.directory = p.sharedDirectory(places)
	return j, nil
}

// sharedDirectory returns the job's directory for the host on which p runs. The first process on that host proposes it,
// and also removes the directories that killed processes of other jobs have left behind.
func (p location) sharedDirectory(places []location) string {
	for _, q := range places {
		if q.host == p.host && q.directory != "" {
			if q.addr == p.addr {
				jobs.Sweep()
			}
			return q.directory
		}
	}
	return ""
}

// join makes this process a rank of its job. The configuration follows from the locations that the processes exchange:
// all links use the extended profile, and no file is read.
func join(ctx context.Context, x Exchange, own location, socket *net.UDPConn) (mpe.Device, error) {
	places, err := exchangeLocations(ctx, x, own)
	if err != nil {
		return nil, err
	}
	if err := checkLocations(places); err != nil {
		return nil, err
	}
	profile := protocol.Extended
	ranks := make([]config.Rank, len(places))
	for rank, p := range places {
		ranks[rank] = config.Rank{Rank: rank, Address: config.Address{AddrPort: p.addr}, Run: config.RunHost}
	}
	cfg := config.New(ranks...)
	cfg.Control.Socket = new("")
	cfg.Defaults.Profile = (*config.Profile)(&profile)
	if text := os.Getenv(EnvUnexpected); text != "" {
		if cfg.Limits.Unexpected, err = strconv.Atoi(text); err != nil {
			return nil, fmt.Errorf("%s=%.40q is not a number: set it to how many messages may wait for receives, or "+
				"unset it", EnvUnexpected, text)
		}
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	process, err := own.newJobProcess(x, places, socket)
	if err != nil {
		return nil, err
	}
	process.ranks = make([]int, len(places))
	for rank := range process.ranks {
		process.ranks[rank] = rank
	}
	d, err := open(cfg, x.Rank(), nil, process)
	if err != nil {
		return nil, err
	}
	return newJobDevice(d, x, socket, process.ranks), nil
}

// checkLocations returns an error if ranks on different hosts cannot reach each other at their addresses.
func checkLocations(places []location) error {
	for a, p := range places {
		for b, q := range places[:a] {
			if same := p.addr.Addr() == q.addr.Addr(); p.host != q.host &&
				(same || p.addr.Addr().IsLoopback() || q.addr.Addr().IsLoopback()) {
				return fmt.Errorf("ranks %d and %d of the job are on two hosts, %s and %s, and cannot reach each "+
					"other at %v and %v: set %s on each host to its address, or to a network that they share",
					b, a, q.host, p.host, q.addr.Addr(), p.addr.Addr(), EnvAddress)
			}
		}
	}
	return nil
}

// jobDevice is a rank of a job.
type jobDevice struct {
	device
	exchange Exchange
	// socket keeps the chosen port reserved. It is nil if the configuration sets the port.
	socket *net.UDPConn
	// toolServer serves the tools.
	toolServer io.Closer
	// stopWatching ends the watch for ranks that do not answer.
	stopWatching func()
}

// newJobDevice starts the services of a rank of a job: answers to tools, and the watch for silent ranks.
func newJobDevice(d device, x Exchange, socket *net.UDPConn, ranks []int) *jobDevice {
	watched, end := context.WithCancel(context.Background())
	watcher := silenceWatcher{rank: d.rank, output: os.Stderr, threshold: silenceTimeout, reported: map[int]bool{},
		finalized: func(rank int) bool {
			process := slices.Index(ranks, rank)
			if process < 0 {
				return false
			}
			_, err := x.Get(watched, finalizedKey(process))
			return err == nil
		}}
	go watcher.watch(watched)
	return &jobDevice{device: d, exchange: x, socket: socket, toolServer: d.rank.Serve(), stopWatching: end}
}

// finalizedKey is the key that a process sets when it stops being a rank. A launcher may not show it to processes on
// other hosts.
func finalizedKey(process int) string { return fmt.Sprintf("zrlmpi-finalized-%d", process) }

// Close ends this process's membership in the job.
func (j *jobDevice) Close(ctx context.Context) error {
	j.stopWatching()
	j.toolServer.Close()
	err := j.device.Close(ctx)
	jobs.RemoveEmpty(j.rank.Directory) // succeeds only for the last rank on this host
	if j.socket != nil {
		j.socket.Close() // the engine may have closed it already
	}
	// Without this key, ranks that never connected to this one would wait for it forever.
	_ = j.exchange.Put(ctx, finalizedKey(j.exchange.Rank()), "1")
	return errors.Join(err, j.exchange.Finalize(ctx))
}

// externalAddr is an address in another network (RFC 5737). No packet is sent to it: it only selects a route.
var externalAddr = netip.MustParseAddrPort("192.0.2.1:9")

// localAddress returns the address of this host that the value of EnvAddress selects.
func localAddress(text string) (netip.Addr, error) {
	if text == "" {
		conn, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(externalAddr))
		if err != nil { // no route
			return netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
		}
		defer conn.Close()
		return conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
	}
	if ip, err := netip.ParseAddr(text); err == nil {
		return ip, nil
	}
	network, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%s=%s is neither an IP address nor a prefix such as 10.1.0.0/16", EnvAddress,
			text)
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}, err
	}
	for _, a := range own {
		if p, err := netip.ParsePrefix(a.String()); err == nil && network.Contains(p.Addr().Unmap()) {
			return p.Addr().Unmap(), nil
		}
	}
	return netip.Addr{}, fmt.Errorf("%s=%s: this host has no address in it: it has %v", EnvAddress, text, own)
}

// hostIdentity returns a text that identifies this host and contains only characters that every launcher can transmit.
func hostIdentity() string {
	name, _ := os.Hostname() // the rest identifies the host without it
	namespace, _ := os.Readlink("/proc/self/ns/net")
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	id := name + "/" + strings.Trim(namespace, "net:[]")
	if len(boot) >= 8 {
		id += "/" + string(boot[:8])
	}
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f || r == ';' || r == '=' {
			return '_'
		}
		return r
	}, id)
}
