package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/metrics/phases"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/match"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/node/kept"
	"github.com/zrlmpi/zrlmpid/node/recorder"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
	"github.com/zrlmpi/zrlmpid/transport/shm"
)

// Rank is a local rank: planned by Plan, bound by Bind, running after Start.
type Rank struct {
	// Config and Self are what the rank was planned by. What a reload may change is in
	// Links.
	Config *config.Config
	Self   *config.Rank
	// Attached says that programs attach to the hosts among this process's ranks.
	// It is to be set before Start.
	Attached bool
	// Engine is nil before Start.
	Engine *mpe.Engine
	// Recorder is what Record has made, or nil.
	Recorder *phases.Recorder
	// Packets records packets, or is nil. It is to be set before Start, whose observer is that of Packets.Observe then.
	Packets *recorder.Rank

	// Directory is the path of the directory of the job to which the rank belongs, in which its ranks on this host find
	// each other and tools find them, or empty. It is to be set before Bind.
	Directory string

	// Describe, if not nil, completes the state of the rank: its kernel, and the programs that use it. Without, its program
	// is this process. It is to be set before Start.
	Describe func(*state.RankInfo, state.Depth)

	// started is closed when there is an Engine: a rank may ask, or an operation fail, before.
	started chan struct{}
	// failures records failures of a rank of a job, or is nil.
	failures *failures

	// kept is the file of KeepState, or nil, and keepers are its entries by peer.
	kept    *kept.File
	keepers map[int]mpe.Keeper

	// memoryUnobserved: the observer is not notified of messages through shared memory.
	memoryUnobserved bool

	// socket is one that is bound to the rank's address already, or nil.
	socket *net.UDPConn
	// processors is how many the ranks of a job on this host may use together, 0 if that is not known.
	processors  int
	sockets     sockets
	links       atomic.Pointer[[]Link]
	collectives collective.Config
}

// Links returns the current links of the rank: an entry per rank of the cluster, of which
// its own is zero. The slice does not change; a reload makes another one. The profile and
// the transport of a link never change.
func (r *Rank) Links() []Link { return *r.links.Load() }

// limitSilence has sends to FPGAs fail that have never answered, as EnvFPGATimeout says.
func (r *Rank) limitSilence() error {
	limit, err := fpgaTimeout()
	if err != nil {
		return err
	}
	links := r.Links()
	for i := range links {
		if remote := r.Config.Rank(i); remote.Peer == config.PeerFPGA {
			links[i].Handshake.Timing.FirstDeadline = limit * timeScale(remote)
		}
	}
	return nil
}

// Plan plans a rank of a valid configuration. Nothing is bound yet. The error
// joins several if there are several; each is a *config.Error, or of Collectives.
func Plan(cfg *config.Config, self *config.Rank) (*Rank, error) {
	r := &Rank{Config: cfg, Self: self, started: make(chan struct{})}
	links, err := newLinks(cfg, self)
	r.links.Store(&links)
	collectives, unread := Collectives(cfg)
	r.collectives = collectives
	if err == nil && self.Faults != nil && !r.uses(config.TransportUDP) {
		err = &config.Error{Key: "faults", Problem: fmt.Sprintf(
			"rank %d: they apply to datagrams, and none of its links uses udp: use transport: udp, or zrlctl impair", self.Rank)}
	}
	return r, errors.Join(err, unread)
}

// newLinks returns the links of a rank to all others.
func newLinks(cfg *config.Config, self *config.Rank) ([]Link, error) {
	links := make([]Link, len(cfg.Ranks))
	var errs []error
	for i := range cfg.Ranks {
		remote := &cfg.Ranks[i]
		if remote.Rank == self.Rank {
			continue
		}
		l, err := NewLink(cfg, self, remote)
		errs = append(errs, err)
		links[remote.Rank] = l
	}
	return links, errors.Join(errs...)
}

// Map returns the configuration's rank map.
func Map(cfg *config.Config) (*rankmap.Map, error) {
	entries := make([]rankmap.Entry, len(cfg.Ranks))
	for i, r := range cfg.Ranks {
		entries[i] = rankmap.Entry{Rank: r.Rank, Addr: r.Address.AddrPort, Kind: r.Peer}
	}
	return rankmap.New(entries)
}

// uses reports whether a link of the rank is on the given transport. A rank
// without peers is on UDP.
func (r *Rank) uses(t config.Transport) bool {
	if len(r.Links()) == 1 {
		return t == config.TransportUDP
	}
	for rank, l := range r.Links() {
		if rank != r.Self.Rank && l.Transport == t {
			return true
		}
	}
	return false
}

// Start makes the engine of a rank whose sockets are bound. The engine owns them
// from here on, unless its kernel exchanges datagrams itself by the rank's Wire: then the
// engine has nothing to do.
func (r *Rank) Start(observer mpe.Observer) error {
	peers := r.peers(r.Config, r.Links())
	room := extended.NewRoom(r.Config.Limits.Unexpected)
	var idle *noTransport
	if r.Self.Kernel.OnWire() {
		idle = &noTransport{addr: r.Self.Address.AddrPort, done: make(chan struct{})}
	}
	for rank := range peers {
		l := &r.Links()[rank]
		if l.Extended != nil {
			l.Extended.Room = room
		}
		if x := l.Extended; x != nil && l.Transport == config.TransportUDP {
			_, granted := r.sockets.udp.ReceiveBuffer()
			x.WindowBytes = windowBytes(granted)
			if x.Discover = r.sockets.udp.Discovers(); !x.Discover {
				x.MaxPayload = l.fixedDatagram - protocol.ExtHeaderLen
				x.WindowBytes = max(x.WindowBytes, 2*x.MaxPayload)
			}
		}
		peers[rank].Transport = r.sockets.on(l.Transport)
		peers[rank].Unobserved = r.memoryUnobserved && l.Transport == config.TransportSHM
		if idle != nil {
			peers[rank].Transport = idle
		}
		if r.Packets != nil {
			peers[rank].Recorder = r.Packets.Pair(rank)
		}
	}
	for _, rank := range r.interruptible() {
		peers[rank].Keeper = r.keeper(rank)
	}
	var failed func()
	if r.failures != nil {
		failed = r.failures.wait
	}
	var calls mpe.CallRecorder // and no interface of a nil pointer
	if r.Packets != nil {
		calls = r.Packets
	}
	engine, err := mpe.New(mpe.Config{
		Rank: r.Self.Rank, Peers: peers, Observer: observer, Calls: calls, Failed: failed,
		Limits:         match.Limits{Posted: r.Config.Limits.Posted, Unexpected: r.Config.Limits.Unexpected},
		Oversubscribed: r.Oversubscribed(),
		Collectives:    r.collectives,
		Report: func() []byte {
			<-r.started
			return r.public()
		},
	})
	if err != nil {
		return err
	}
	r.Engine = engine
	close(r.started)
	if r.Packets != nil {
		r.Packets.Start(engine.Started())
	}
	return nil
}

// AfterEvent waits until no event of the engine is being handled: what fails in one, as the messages to a peer that is lost, shares a record.
func (r *Rank) AfterEvent() {
	<-r.started
	r.Engine.Depths() // which takes the engine's lock
}

// peers returns the engine's view of the links, without their transports.
func (r *Rank) peers(cfg *config.Config, links []Link) []mpe.Peer {
	peers := make([]mpe.Peer, len(links))
	for i := range cfg.Ranks {
		remote := &cfg.Ranks[i]
		if l := &links[remote.Rank]; remote.Rank != r.Self.Rank {
			peers[remote.Rank] = mpe.Peer{
				Handshake: l.Handshake, Extended: l.Extended, Kind: remote.Peer, Address: remote.Address.String(),
			}
		}
	}
	return peers
}

// Close ends the engine, if there is one, as mpe.Engine.Close does, and releases
// the sockets.
func (r *Rank) Close(ctx context.Context) error {
	if r.Engine == nil {
		return errors.Join(r.sockets.close(), r.closeKept())
	}
	err := r.Engine.Close(ctx)
	if r.failures != nil {
		r.failures.wait()
	}
	err = errors.Join(err, r.closeKept())
	if r.Self.Kernel.OnWire() {
		return errors.Join(err, closed(r.sockets.close()))
	}
	if len(r.Links()) == 1 {
		err = r.sockets.close() // an engine without peers has not taken it
	}
	return err
}

// Oversubscribed reports whether the rank's host has more ranks than cores by the
// configuration, attached programs included. A caller that polls for a packet then yields
// to other processes.
func (r *Rank) Oversubscribed() bool {
	return busy(r.Config, r.Self, r.Attached) > cmp.Or(r.processors, runtime.NumCPU())
}

// Open makes this process the given rank of a configuration, and returns the rank's
// running engine. The rank is a host here, whatever its run is in the configuration. The
// environment variables for collectives override the configuration.
func Open(cfg *config.Config, rank int, observer mpe.Observer) (mpe.Device, error) {
	d, err := open(cfg, rank, observer, nil)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// open is Open, for a process of a job if j is not nil. Such a rank records the phases of its messages over networks.
func open(cfg *config.Config, rank int, observer mpe.Observer, j *jobProcess) (device, error) {
	if rank < 0 || rank >= len(cfg.Ranks) {
		return device{}, fmt.Errorf("rank %d: the configuration has ranks 0 to %d", rank, len(cfg.Ranks)-1)
	}
	mine := *cfg
	mine.Ranks = slices.Clone(cfg.Ranks)
	for i := range mine.Ranks {
		r := &mine.Ranks[i]
		if r.Rank == rank {
			if r.Peer != config.PeerSoftware {
				return device{}, fmt.Errorf("rank %d is peer: %s in the configuration, and this is a program on zrlmpid: set peer: software, or run: host", rank, r.Peer)
			}
			r.Run, r.Kernel, r.KernelOptions, r.Quirks = config.RunHost, config.Kernel{}, nil, ""
			continue
		}
		// Others are other processes' business; what they are stays.
		r.Run = ""
	}
	if err := mine.Collectives.ApplyEnv(os.LookupEnv); err != nil {
		return device{}, err
	}
	r, err := Plan(&mine, mine.Rank(rank))
	if err != nil {
		return device{}, err
	}
	if j != nil {
		if r.socket, r.processors, r.Directory = j.socket, j.processors, j.directory; r.Directory == "" &&
			r.uses(config.TransportSHM) {
			return device{}, &shm.ListenError{Rank: rank, Addr: r.Self.Address.AddrPort, Err: j.noDirectory}
		}
		for _, other := range j.ranks {
			if e := r.Links()[other].Extended; e != nil {
				e.Job = true
			}
		}
		if err := r.limitSilence(); err != nil {
			return device{}, err
		}
		rec := recording{Recorder: r.Record(len(mine.Ranks))}
		observer, r.memoryUnobserved = rec, !mine.Record.SharedMemory
		if r.overNetwork(&mine.Record) && RecordPackets(&mine.Record, []*Rank{r}) != nil {
			if len(recordsDirectories(&mine.Record.Spool)) > 0 {
				r.failures = &failures{rank: r, job: j.name, to: os.Stderr}
				rec.failures = r.failures
			}
			observer = r.Packets.Observe(rec)
		}
	}
	m, err := Map(&mine)
	if err != nil {
		return device{}, err
	}
	if err := r.Bind(m); err != nil {
		return device{}, errors.Join(err, r.sockets.close()) // those that could be had
	}
	if err := r.keepStateOfUser(); err != nil {
		fmt.Fprintf(os.Stderr, "zrlmpi: %v\n", err)
	}
	if err := r.Start(observer); err != nil {
		return device{}, errors.Join(err, r.sockets.close())
	}
	return device{r.Engine, r}, nil
}

// OpenFile is Open for the configuration in a file.
func OpenFile(path string, rank int) (mpe.Device, error) {
	cfg, err := config.Load(path)
	if err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return Open(cfg, rank, nil)
}

// device is an engine that takes its sockets along when it is closed.
type device struct {
	*mpe.Engine
	rank *Rank
}

// Close ends the rank.
func (d device) Close(ctx context.Context) error {
	err := d.rank.Close(ctx)
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	return err
}
