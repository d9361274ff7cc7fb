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
	"github.com/zrlmpi/zrlmpid/udp"
)

// Rank is a local rank. Plan makes it from a configuration, Bind binds its sockets, and Start starts its engine.
type Rank struct {
	// Config and Self are the configuration that the rank was planned from. Links returns the values that a reload may
	// change.
	Config *config.Config
	Self   *config.Rank
	// Attached is set if programs attach to host ranks of this process. It must be set before Start.
	Attached bool
	// Engine is nil before Start.
	Engine *mpe.Engine
	// PhaseRecorder is the recorder made by RecordPhases, nil before that call.
	PhaseRecorder *phases.Recorder
	// FlightRecorder records packets, unless it is nil. It must be set before Start, whose observer must then be the
	// result of FlightRecorder.Observe.
	FlightRecorder *recorder.Rank

	// Directory is the path of the directory of the rank's job, in which the ranks on this host find each other and
	// tools find the ranks. It is empty if the rank is not part of a job. It must be set before Bind.
	Directory string

	// OpenPath returns the function that opens a path past the kernel's socket, for PathXDP or PathAuto. If it is nil,
	// this process does not support such paths. It must be set before Bind.
	OpenPath func(config.Path) udp.OpenPath

	// Describe adds the kernel and the programs that use the rank to the rank's state. If it is nil, this process is
	// the rank's program. It must be set before Start.
	Describe func(*state.RankInfo, state.Detail)

	// engineReady is closed when Engine is set. Even before that, another rank may ask for a report, or an operation
	// may fail.
	engineReady chan struct{}
	// failures records failed operations if the rank belongs to a job. It is nil for all other ranks.
	failures *failureRecorder

	// stateFile is the file opened by KeepState. It is nil if KeepState has not opened one. keepers holds the file's
	// entries by peer.
	stateFile *kept.File
	keepers   map[int]mpe.Keeper

	// skipSharedMemory is set if the observer ignores messages through shared memory.
	skipSharedMemory bool

	// pathError is the reason why the rank uses only the kernel's socket although a link is configured otherwise.
	pathError error

	// boundSocket is a socket already bound to the rank's address, nil if Bind must bind one.
	boundSocket *net.UDPConn
	// processors is the number of processors available to a job's ranks on this host, or 0 if unknown.
	processors  int
	sockets     sockets
	links       atomic.Pointer[[]Link]
	collectives collective.Config
}

// Links returns the current links of the rank, with one entry per rank of the cluster; the rank's own entry is zero.
// The slice is immutable; a reload replaces it. The profile and the transport of a link never change.
func (r *Rank) Links() []Link { return *r.links.Load() }

// setFPGATimeout sets, from EnvFPGATimeout, the time after which sends to FPGAs that have never answered fail.
func (r *Rank) setFPGATimeout() error {
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

// Plan makes a Rank from a valid configuration. It binds no sockets. The error may join several errors, each a
// *config.Error or an error of Collectives.
func Plan(cfg *config.Config, self *config.Rank) (*Rank, error) {
	rank := &Rank{Config: cfg, Self: self, engineReady: make(chan struct{})}
	links, err := newLinks(cfg, self)
	rank.links.Store(&links)
	collectives, unread := Collectives(cfg)
	rank.collectives = collectives
	if err == nil && self.Faults != nil && !rank.usesTransport(config.TransportUDP) {
		err = &config.Error{Key: "faults", Problem: fmt.Sprintf(
			"rank %d: they apply to datagrams, and none of its links uses udp: use transport: udp, or zrlctl impair",
			self.Rank)}
	}
	return rank, errors.Join(err, unread)
}

// newLinks returns the links of a rank to all other ranks.
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

// RankMap returns the configuration's rank map.
func RankMap(cfg *config.Config) (*rankmap.Map, error) {
	entries := make([]rankmap.Entry, len(cfg.Ranks))
	for i, r := range cfg.Ranks {
		entries[i] = rankmap.Entry{Rank: r.Rank, Addr: r.Address.AddrPort, Kind: r.Peer}
	}
	return rankmap.New(entries)
}

// usesTransport reports whether a link of the rank uses the given transport. A rank without peers uses UDP.
func (r *Rank) usesTransport(t config.Transport) bool {
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

// Start makes the engine of a rank whose sockets are bound. From then on the engine owns the sockets, unless the rank's
// kernel exchanges datagrams itself through the rank's Wire; the engine is then idle.
func (r *Rank) Start(observer mpe.Observer) error {
	peers := r.peers(r.Config, r.Links())
	room := extended.NewCreditPool(r.Config.Limits.Unexpected)
	var idle *nopTransport
	if r.Self.Kernel.BypassesEngine() {
		idle = &nopTransport{addr: r.Self.Address.AddrPort, done: make(chan struct{})}
	}
	for rank := range peers {
		l := &r.Links()[rank]
		if l.Extended != nil {
			l.Extended.CreditPool = room
		}
		if x := l.Extended; x != nil && l.Transport == config.TransportUDP {
			_, granted := r.sockets.udp.ReceiveBuffer()
			x.WindowBytes = windowBytes(granted)
			if x.Discover = r.sockets.udp.Discovers(); !x.Discover {
				x.MaxPayload = l.fallbackDatagram - protocol.ExtHeaderLen
				x.WindowBytes = max(x.WindowBytes, 2*x.MaxPayload)
			}
		}
		peers[rank].Transport = r.sockets.transport(l.Transport)
		peers[rank].Unobserved = r.skipSharedMemory && l.Transport == config.TransportSHM
		if idle != nil {
			peers[rank].Transport = idle
		}
		if r.FlightRecorder != nil {
			peers[rank].Recorder = r.FlightRecorder.Pair(rank)
		}
	}
	for _, rank := range r.sessionlessPeers() {
		peers[rank].Keeper = r.keeperFor(rank)
	}
	var failed func()
	if r.failures != nil {
		failed = r.failures.waitWritten
	}
	var calls mpe.CallRecorder // not an interface that holds a nil pointer
	if r.FlightRecorder != nil {
		calls = r.FlightRecorder
	}
	engine, err := mpe.New(mpe.Config{
		Rank: r.Self.Rank, Peers: peers, Observer: observer, Calls: calls, OnFailure: failed,
		Limits:         match.Limits{Posted: r.Config.Limits.Posted, Unexpected: r.Config.Limits.Unexpected},
		Oversubscribed: r.Oversubscribed(),
		Collectives:    r.collectives,
		MakeReport: func() []byte {
			<-r.engineReady
			return r.publicState()
		},
	})
	if err != nil {
		return err
	}
	r.Engine = engine
	close(r.engineReady)
	if r.FlightRecorder != nil {
		r.FlightRecorder.SetStartTime(engine.StartTime())
	}
	return nil
}

// AwaitEventEnd waits until the engine has finished handling the current event, so that all failures of one event, such
// as messages to a lost peer, share a record.
func (r *Rank) AwaitEventEnd() {
	<-r.engineReady
	r.Engine.Depths() // takes the engine's lock
}

// peers returns how the engine treats each peer. The transports are not yet set.
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

// Close closes the engine, if it was started, as mpe.Engine.Close does, and releases the sockets.
func (r *Rank) Close(ctx context.Context) error {
	if r.Engine == nil {
		return errors.Join(r.sockets.close(), r.closeStateFile())
	}
	err := r.Engine.Close(ctx)
	if r.failures != nil {
		r.failures.waitWritten()
	}
	err = errors.Join(err, r.closeStateFile())
	if r.Self.Kernel.BypassesEngine() {
		return errors.Join(err, ignoreClosed(r.sockets.close()))
	}
	if len(r.Links()) == 1 {
		err = r.sockets.close() // an engine without peers does not own the socket
	}
	return err
}

// Oversubscribed reports whether the configuration places more ranks and attached programs on the rank's host than it
// has cores. Callers that poll for packets should then yield to other processes.
func (r *Rank) Oversubscribed() bool {
	return busyRanks(r.Config, r.Self, r.Attached) > cmp.Or(r.processors, runtime.NumCPU())
}

// Open makes this process the given rank of a configuration, and returns the rank's running engine. The rank is a host,
// whatever the configuration's run value is. The environment variables for collectives override the configuration.
func Open(cfg *config.Config, rank int, observer mpe.Observer) (mpe.Device, error) {
	d, err := open(cfg, rank, observer, nil)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// open implements Open. A process other than nil is a process of a job; its rank records the phases of its messages
// over networks.
func open(cfg *config.Config, rank int, observer mpe.Observer, process *jobProcess) (device, error) {
	if rank < 0 || rank >= len(cfg.Ranks) {
		return device{}, fmt.Errorf("rank %d: the configuration has ranks 0 to %d", rank, len(cfg.Ranks)-1)
	}
	mine := *cfg
	mine.Ranks = slices.Clone(cfg.Ranks)
	for i := range mine.Ranks {
		r := &mine.Ranks[i]
		if r.Rank == rank {
			if r.Peer != config.PeerSoftware {
				return device{}, fmt.Errorf("rank %d is peer: %s in the configuration, and this is a program on "+
					"zrlmpid: set peer: software, or run: host", rank, r.Peer)
			}
			r.Run, r.Kernel, r.KernelOptions, r.Quirks = config.RunHost, config.Kernel{}, nil, ""
			continue
		}
		// The other ranks belong to other processes; only their run value is cleared.
		r.Run = ""
	}
	if err := mine.Collectives.ApplyEnv(os.LookupEnv); err != nil {
		return device{}, err
	}
	r, err := Plan(&mine, mine.Rank(rank))
	if err != nil {
		return device{}, err
	}
	if process != nil {
		if r.boundSocket, r.processors, r.Directory = process.socket, process.processors,
			process.directory; r.Directory == "" &&
			r.usesTransport(config.TransportSHM) {
			return device{}, &shm.ListenError{Rank: rank, Addr: r.Self.Address.AddrPort, Err: process.directoryErr}
		}
		for _, other := range process.ranks {
			if e := r.Links()[other].Extended; e != nil {
				e.Job = true
			}
		}
		if err := r.setFPGATimeout(); err != nil {
			return device{}, err
		}
		rec := jobObserver{Recorder: r.RecordPhases(len(mine.Ranks))}
		observer, r.skipSharedMemory = rec, !mine.Record.SharedMemory
		if r.recordsPackets(&mine.Record) && RecordPackets(&mine.Record, []*Rank{r}) != nil {
			if len(recordsDirectories(&mine.Record.Spool)) > 0 {
				r.failures = &failureRecorder{rank: r, job: process.name, output: os.Stderr}
				rec.failures = r.failures
			}
			observer = r.FlightRecorder.Observe(rec)
		}
	}
	m, err := RankMap(&mine)
	if err != nil {
		return device{}, err
	}
	if err := r.Bind(m); err != nil {
		return device{}, errors.Join(err, r.sockets.close()) // release the sockets that were bound
	}
	if err := r.keepUserState(); err != nil {
		fmt.Fprintf(os.Stderr, "zrlmpi: %v\n", err)
	}
	if err := r.Start(observer); err != nil {
		return device{}, errors.Join(err, r.sockets.close())
	}
	return device{r.Engine, r}, nil
}

// OpenFile is like Open, with the configuration in a file.
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

// device is an engine whose Close also releases the rank's sockets.
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
