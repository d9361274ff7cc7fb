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

// EnvAddress names an environment variable with the IP address at which this host's ranks of a
// job are, or a prefix such as 10.1.0.0/16 that it is in. Without it, it is the one from which
// packets to other networks are sent, or a loopback address if there is none.
const EnvAddress = "ZRLMPI_ADDRESS"

// EnvUnexpected names an environment variable that is limits.unexpected of a job without a configuration.
const EnvUnexpected = "ZRLMPI_UNEXPECTED"

// EnvFPGATimeout names an environment variable with the time after which a send of a job to an FPGA fails that has
// never sent a packet, as 90s; 0s, the default, is never.
const EnvFPGATimeout = "ZRLMPI_FPGA_TIMEOUT"

// fpgaTimeout returns the time that EnvFPGATimeout names.
func fpgaTimeout() (time.Duration, error) {
	text := os.Getenv(EnvFPGATimeout)
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%s=%.40q is not a time: give one with its unit, as in 90s, or unset it", EnvFPGATimeout, text)
	}
	return d, nil
}

// Exchange is what a launcher offers to the processes of a job: by it they find each other.
type Exchange interface {
	// Name is the launcher's name of the job.
	Name() string
	Rank() int
	Size() int
	// Put gives a key a value, which all processes can Get after the next Barrier.
	Put(ctx context.Context, key, value string) error
	Get(ctx context.Context, key string) (string, error)
	Barrier(ctx context.Context) error
	// Finalize says that the process is not to be waited for any longer.
	Finalize(ctx context.Context) error
}

// Join makes this process the rank of a job that a launcher has started, and returns the rank's
// running engine. It returns when all of the job's processes have called it. Closing the engine
// ends the exchange.
//
// Without a configuration the processes are all ranks. They speak the extended profile, through
// shared memory within a host. With the path of one, they are those of its ranks that JobRanks
// returns, in this order, at the addresses that it gives them; the others are FPGAs, or whatever
// else it says.
func Join(ctx context.Context, x Exchange, path string) (mpe.Device, error) {
	if path != "" {
		return joinConfigured(ctx, x, path)
	}
	ip, err := ownAddress(os.Getenv(EnvAddress))
	if err != nil {
		return nil, err
	}
	// The port is the rank's as long as it runs, whatever transports it uses.
	socket, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, 0)))
	if err != nil {
		return nil, fmt.Errorf("a port for rank %d of the job: %w", x.Rank(), err)
	}
	d, err := join(ctx, x, ownPlace(x, socket.LocalAddr().(*net.UDPAddr).AddrPort()), socket)
	if err != nil {
		socket.Close()
		return nil, err
	}
	return d, nil
}

// JobRanks returns the ranks of a configuration that the processes of a job are, in rank order: those that are
// zrlmpids, and no stand-ins.
func JobRanks(cfg *config.Config) (ranks []int) {
	for _, r := range cfg.Ranks {
		if r.Peer == config.PeerSoftware && r.Run != config.RunStandin {
			ranks = append(ranks, r.Rank)
		}
	}
	slices.Sort(ranks)
	return ranks
}

// CheckAddresses binds the addresses of ranks for a moment. The error is a *bindfault.ListenError, which says who has
// a port, or which addresses this host has.
func CheckAddresses(cfg *config.Config, ranks []int) error {
	m, err := Map(cfg)
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

// joinConfigured is Join with a configuration.
func joinConfigured(ctx context.Context, x Exchange, path string) (mpe.Device, error) {
	cfg, err := config.Load(path)
	if err != nil {
		return nil, err
	}
	ranks := JobRanks(cfg)
	if len(ranks) != x.Size() {
		return nil, fmt.Errorf("%s has %d ranks for programs %v, and the job has %d processes: start as many as there are ranks", path, len(ranks), ranks, x.Size())
	}
	rank := ranks[x.Rank()]
	m, err := Map(cfg)
	if err != nil {
		return nil, err
	}
	// All processes have the same ranks, or messages would go astray.
	if err := x.Put(ctx, ranksKey(x.Rank()), ranksDigest(cfg)); err != nil {
		return nil, err
	}
	own := ownPlace(x, m.Addr(rank))
	places, err := exchangePlaces(ctx, x, own)
	if err != nil {
		return nil, err
	}
	process, err := own.process(x, places, nil)
	if err != nil {
		return nil, err
	}
	cfg.Ranks = extendedAmong(cfg, ranks)
	process.ranks = ranks
	d, err := open(cfg, rank, nil, process)
	if err != nil {
		return nil, err
	}
	if err := sameRanks(ctx, x, path, rank); err != nil {
		return nil, errors.Join(err, d.Close(context.WithoutCancel(ctx)))
	}
	return newJoined(d, x, nil, ranks), nil
}

// extendedAmong returns the ranks of a configuration, of which those of the job have the extended profile for the
// links among each other if nothing is said of them.
func extendedAmong(cfg *config.Config, job []int) []config.Rank {
	if cfg.Defaults.Profile != nil {
		return cfg.Ranks
	}
	return cfg.WithLinks(job, func(l *config.LinkOptions) {
		if l.Profile == nil {
			l.Profile = new(config.Profile(protocol.Extended))
		}
	})
}

func ranksKey(process int) string { return fmt.Sprintf("zrlmpi-ranks-%d", process) }

// ranksDigest identifies the ranks of a configuration: where they are, and what.
func ranksDigest(cfg *config.Config) string {
	h := sha256.New()
	for rank := range cfg.Ranks {
		r := cfg.Rank(rank)
		fmt.Fprintln(h, r.Address, r.Peer)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// sameRanks waits until all processes have opened their ranks, and compares their ranks with those of the first one.
func sameRanks(ctx context.Context, x Exchange, path string, rank int) error {
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
		return fmt.Errorf("%s has other ranks or addresses for rank %d than for the first process of the job: all of its hosts need the same file", path, rank)
	}
	return nil
}

// place is where a process of a job is.
type place struct {
	addr netip.AddrPort
	// host identifies a host, or a container on it: shared memory and addresses are within it.
	host string
	// processors are those that the process may use, as of ownProcessors.
	processors string
	// directory is the path that the process proposes for the directory of the job on its host, or that the launcher
	// has handed over; empty if there is none, and then noDirectory says why.
	directory   string
	noDirectory error
}

// ownPlace returns the place of this process.
func ownPlace(x Exchange, addr netip.AddrPort) place {
	p := place{addr: addr, host: hostName(), processors: ownProcessors(),
		directory: jobs.HandedOver(x.Name(), os.Getenv)}
	if p.directory == "" {
		p.directory, p.noDirectory = jobs.Propose(x.Name())
	}
	if len(p.String()) > maxPlace {
		p.noDirectory = fmt.Errorf("the path %s is too long for the launcher: set XDG_RUNTIME_DIR to a shorter one",
			p.directory)
		p.directory = ""
	}
	return p
}

// jobProcess is what is known of the process of a job.
type jobProcess struct {
	name string // of the job
	// socket is bound to the rank's address already, or nil.
	socket *net.UDPConn
	// processors is how many the processes of the job on this host may use together, or 0.
	processors int
	// directory of the job on this host, or empty, and then noDirectory says why.
	directory   string
	noDirectory error
	// ranks of the job's processes.
	ranks []int
}

// maxPlace is the most bytes of a place: a launcher takes values of 1024 bytes.
const maxPlace = 1000

// jobVersion is what ranks of a job check that they understand each other by.
const jobVersion = "zrlmpi3"

func (p place) String() string {
	return strings.Join([]string{jobVersion, p.addr.String(), p.host, p.processors, url.QueryEscape(p.directory)}, ";")
}

func parsePlace(text string) (place, error) {
	fields := strings.Split(text, ";")
	if len(fields) != 5 || fields[0] != jobVersion {
		return place{}, fmt.Errorf("its entry is %.80q, which this version cannot read: all programs of a job must use the same version of zrlmpi", text)
	}
	addr, err := netip.ParseAddrPort(fields[1])
	if err != nil {
		return place{}, err
	}
	directory, err := url.QueryUnescape(fields[4])
	return place{addr: addr, host: fields[2], processors: fields[3], directory: directory}, err
}

func placeKey(process int) string { return fmt.Sprintf("zrlmpi-place-%d", process) }

// exchangePlaces waits for all processes, and returns their places in order.
func exchangePlaces(ctx context.Context, x Exchange, own place) ([]place, error) {
	if err := x.Put(ctx, placeKey(x.Rank()), own.String()); err != nil {
		return nil, err
	}
	if err := x.Barrier(ctx); err != nil {
		return nil, err
	}
	places := make([]place, x.Size())
	for process := range places {
		text, err := x.Get(ctx, placeKey(process))
		if err == nil {
			places[process], err = parsePlace(text)
		}
		if err != nil {
			return nil, fmt.Errorf("process %d of the job: %w", process, err)
		}
	}
	return places, nil
}

// shared returns how many processors the processes of a job on the host of p may use together, or 0 if that is not known.
func (p place) shared(places []place) (int, error) {
	var lists []string
	for _, q := range places {
		if q.host == p.host {
			lists = append(lists, q.processors)
		}
	}
	n, err := processorsOf(lists)
	if err != nil {
		return 0, fmt.Errorf("a process of the job on %s: %w", p.host, err)
	}
	return n, nil
}

// process returns the process of the job at p.
func (p place) process(x Exchange, places []place, socket *net.UDPConn) (*jobProcess, error) {
	processors, err := p.shared(places)
	if err != nil {
		return nil, err
	}
	j := &jobProcess{name: x.Name(), socket: socket, processors: processors, noDirectory: p.noDirectory}
	j.directory = p.sharedDirectory(places)
	return j, nil
}

// sharedDirectory returns the directory of the job on the host of p: the one that the first process there has proposed.
// That process removes the remains of killed processes of other jobs.
func (p place) sharedDirectory(places []place) string {
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

func join(ctx context.Context, x Exchange, own place, socket *net.UDPConn) (mpe.Device, error) {
	places, err := exchangePlaces(ctx, x, own)
	if err != nil {
		return nil, err
	}
	if err := checkPlaces(places); err != nil {
		return nil, err
	}
	profile := protocol.Extended
	ranks := make([]config.Rank, len(places))
	for rank, p := range places {
		ranks[rank] = config.Rank{Rank: rank, Address: config.Address{AddrPort: p.addr}, Run: config.RunHost}
	}
	cfg := config.New(ranks...)
	cfg.Control.Socket = ""
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
	process, err := own.process(x, places, socket)
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
	return newJoined(d, x, socket, process.ranks), nil
}

// checkPlaces wants ranks on different hosts to reach each other at their addresses.
func checkPlaces(places []place) error {
	for a, p := range places {
		for b, q := range places[:a] {
			if same := p.addr.Addr() == q.addr.Addr(); p.host != q.host && (same || p.addr.Addr().IsLoopback() || q.addr.Addr().IsLoopback()) {
				return fmt.Errorf("ranks %d and %d of the job are on two hosts, %s and %s, and cannot reach each other at %v and %v: set %s on each host to its address, or to a network that they share",
					b, a, q.host, p.host, q.addr.Addr(), p.addr.Addr(), EnvAddress)
			}
		}
	}
	return nil
}

// joined is a rank of a job.
type joined struct {
	device
	exchange Exchange
	// socket keeps a port that was chosen; nil if the configuration has one.
	socket *net.UDPConn
	// reports answer the tools.
	reports io.Closer
	// end ends the watch for ranks that do not answer.
	end func()
}

func newJoined(d device, x Exchange, socket *net.UDPConn, ranks []int) *joined {
	watched, end := context.WithCancel(context.Background())
	u := unanswered{rank: d.rank, to: os.Stderr, after: answerTime, said: map[int]bool{},
		finalized: func(rank int) bool {
			process := slices.Index(ranks, rank)
			if process < 0 {
				return false
			}
			_, err := x.Get(watched, finalizedKey(process))
			return err == nil
		}}
	go u.watch(watched)
	return &joined{device: d, exchange: x, socket: socket, reports: d.rank.Serve(), end: end}
}

// finalizedKey is the key that a process puts when it is no rank any longer. A launcher may keep it from processes on
// other hosts.
func finalizedKey(process int) string { return fmt.Sprintf("zrlmpi-finalized-%d", process) }

// Close ends the rank's part in the job.
func (j *joined) Close(ctx context.Context) error {
	j.end()
	j.reports.Close()
	err := j.device.Close(ctx)
	jobs.RemoveEmpty(j.rank.Directory) // the last rank on this host does
	if j.socket != nil {
		j.socket.Close() // again, where it was the engine's
	}
	// Without it, ranks that were never connected to this one wait for it.
	_ = j.exchange.Put(ctx, finalizedKey(j.exchange.Rank()), "1")
	return errors.Join(err, j.exchange.Finalize(ctx))
}

// anywhere is an address of another network, to which nothing is sent (RFC 5737).
var anywhere = netip.MustParseAddrPort("192.0.2.1:9")

// ownAddress returns the address of this host by what EnvAddress says.
func ownAddress(text string) (netip.Addr, error) {
	if text == "" {
		conn, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(anywhere))
		if err != nil { // there is no route
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
		return netip.Addr{}, fmt.Errorf("%s=%s is neither an IP address nor a prefix such as 10.1.0.0/16", EnvAddress, text)
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

// hostName identifies this host, in characters that an exchange carries.
func hostName() string {
	name, _ := os.Hostname() // what follows makes up for it
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
