package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/internal/version"
	"github.com/zrlmpi/zrlmpid/node"
)

// link describes one of the ways in which zrlmpid's ranks can communicate.
type link struct {
	key, name, profile, transport string
	group                         Group
	// path, if set, is the path of datagrams between two hosts. raw means that no engine uses it.
	path config.Path
	raw  bool
	// attached means that the ranks belong to a daemon, and oneProgram that a single program uses all ranks.
	attached, oneProgram bool
	// workloads lists the supported workloads. The default is all workloads.
	workloads []string
	// supportsTags reports whether messages can have tags.
	supportsTags bool
	// methods lists broadcast methods to measure in addition to zrlmpid's own choice.
	methods []namedMethod
}

// Segment sizes for chains and piece sizes for flows. They are approximately the fastest ones for 8 ranks on two
// processors.
const (
	networkPiece  = 32 << 10
	memoryPiece   = 128 << 10
	memorySegment = 256 << 10
)

var (
	cloudFPGA = link{key: "cloudfpga", name: "zrlmpid, cloudfpga, UDP", profile: "cloudfpga", transport: "udp",
		group: Network}
	extendedUDP = link{key: "extended-udp", name: "zrlmpid, extended, UDP", profile: "extended", transport: "udp",
		group: Network, supportsTags: true, methods: methods("udp", networkPiece, networkPiece)}
	extendedTCP = link{key: "extended-tcp", name: "zrlmpid, extended, TCP", profile: "extended", transport: "tcp",
		group: Network, supportsTags: true, methods: methods("tcp", networkPiece, networkPiece, "chain", "atomic")}
	extendedShm = link{key: "extended-shm", name: "zrlmpid, extended, shared memory", profile: "extended",
		transport: "shm", group: Memory, supportsTags: true, methods: methods("shm", memorySegment, memoryPiece)}

	links = []link{
		cloudFPGA,
		{key: "v0.9", name: "zrlmpid, v0.9, UDP", profile: "v0.9", transport: "udp", group: Network},
		extendedUDP, extendedTCP,
		{key: "attached", name: "zrlmpid, attached, extended, UDP", profile: "extended", transport: "udp",
			group: Network, attached: true, supportsTags: true},
		{key: "attached-one", name: "zrlmpid, attached, one program, extended, UDP", profile: "extended",
			transport: "udp", group: Network, attached: true, oneProgram: true, workloads: []string{"pingpong"},
			supportsTags: true},
		extendedShm,
	}
)

// hostLinks are the links between two hosts.
var hostLinks = []link{
	{key: "cloudfpga-veth", name: "zrlmpid, cloudfpga, UDP", profile: "cloudfpga", transport: "udp", group: Hosts,
		path: config.PathKernel},
	{key: "cloudfpga-xdp", name: "zrlmpid, cloudfpga, AF_XDP", profile: "cloudfpga", transport: "udp", group: Hosts,
		path: config.PathXDP},
	{key: "extended-veth", name: "zrlmpid, extended, UDP", profile: "extended", transport: "udp", group: Hosts,
		path: config.PathKernel},
	{key: "extended-xdp", name: "zrlmpid, extended, AF_XDP", profile: "extended", transport: "udp", group: Hosts,
		path: config.PathXDP},
	{key: rawXDP, name: "raw AF_XDP round trip, polling", profile: "cloudfpga", transport: "udp", group: Hosts,
		path: config.PathXDP, raw: true},
}

func ourFamily() family { return familyOfLinks(links) }

func familyOfLinks(links []link) family {
	f := family{find: func(_ context.Context, dir string, wanted func(string) bool) ([]side, []string, error) {
		return findLinks(links, dir, wanted)
	}}
	for _, l := range links {
		f.keys = append(append(f.keys, l.key), l.methodKeys()...)
	}
	return f
}

func findLinks(links []link, dir string, wanted func(string) bool) (found []side, missing []string, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	for i := range links {
		l := &links[i]
		if !slices.ContainsFunc(l.parts(), func(p part) bool { return wanted(p.Key) }) {
			continue
		}
		if err := l.probe(dir); err != nil {
			missing = append(missing, fmt.Sprintf("%s is missing: this version refuses its configuration. It is not "+
				"measured. %v", l.key, err))
			continue
		}
		found = append(found, l.side(self, wanted))
	}
	return found, missing, nil
}

// probe checks that this version supports the link.
func (l *link) probe(dir string) error {
	file := filepath.Join(dir, l.key+".probe.yaml")
	if err := l.configure(file, "", 2); err != nil {
		return err
	}
	cfg, err := config.Load(file)
	if err != nil {
		return err
	}
	_, err = node.Plan(cfg, cfg.Rank(0))
	return err
}

// parts returns the sides that a run over the link measures: the link itself, and one side for each broadcast method.
func (l *link) parts() []part {
	how := "node.Open in a process for each rank"
	switch {
	case l.raw:
		how = "udp/xdp in a process for each host"
	case l.path != "":
		how = fmt.Sprintf("node.Plan in a process for each host, path: %s", l.path)
	case l.oneProgram:
		how = "attach.Dial for all ranks in a process, and a daemon in one"
	case l.attached:
		how = "attach.Dial in a process for each rank, and a daemon in one"
	}
	self := Side{
		Key: l.key, Name: l.name, Kind: Ours, Group: l.group, Version: version.String(),
		Command: fmt.Sprintf("%s, profile: %s, transport: %s", how, l.profile, l.transport),
	}
	if l.raw {
		self.Kind, self.Command = Limit, how
	}
	all := []part{{Side: self}}
	for _, m := range l.methods {
		s := self
		s.Key, s.Name, s.Method, s.With = m.key, fmt.Sprintf("%s, %v", l.name, m.method), m.method.String(), l.key
		all = append(all, part{Side: s, method: m.method})
	}
	return all
}

// supports reports whether the link supports the workload.
func (l *link) supports(w *workload) bool {
	if l.raw {
		return w.name == "pingpong"
	}
	return (!w.usesTags || l.supportsTags) && (!w.inProcess || !l.attached) &&
		(len(l.workloads) == 0 || slices.Contains(l.workloads, w.name))
}

// methodKeys returns the keys of the sides that run the link's methods.
func (l *link) methodKeys() (keys []string) {
	for _, m := range l.methods {
		keys = append(keys, m.key)
	}
	return keys
}

// side returns the link as a side that can be measured.
func (l *link) side(self string, wanted func(string) bool) side {
	all := l.parts()
	s := side{Side: all[0].Side}
	s.parts = func(w *workload) (some []part) {
		for _, p := range all {
			if wanted(p.Key) && (w.methods || p.Method == "") {
				some = append(some, p)
			}
		}
		return some
	}
	s.steps = func(w *workload, steps []step) []step {
		if !l.supports(w) {
			return nil
		}
		if l.raw {
			return stepsUpTo(rawPathMost, steps)
		}
		return steps
	}
	s.run = func(ctx context.Context, j job, out io.Writer) error { return l.run(ctx, self, j, out) }
	return s
}

// run runs all ranks, and writes the output of rank 0 to out.
func (l *link) run(ctx context.Context, self string, j job, out io.Writer) (err error) {
	base := filepath.Join(j.dir, l.key)
	file, control := base+".yaml", ""
	ranks := launch{self: self, key: l.key, args: []string{"-config", file}}
	switch {
	case l.attached:
		control = base + ".sock"
		ranks.args = []string{"-attach", config.AttachSocketFor(control)}
	case l.raw:
		ranks.args = append(ranks.args, "-raw")
	case l.path != "":
		ranks.args = append(ranks.args, "-path")
	}
	if err := l.configure(file, control, j.ranks); err != nil {
		return err
	}
	if l.attached {
		pid, stop, failed := startDaemon(ctx, self, file) // err is the result of run
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, stop()) }()
		ranks.firstArgs = []string{"-daemon", strconv.Itoa(pid)}
	}
	if l.oneProgram {
		ranks.args = append(ranks.args, "-together", strconv.Itoa(j.ranks))
		j.ranks = 1
	}
	return ranks.run(ctx, j, out)
}

// launch describes how the processes of the ranks of a link are started.
type launch struct {
	self, key string
	// args are the arguments of all ranks. firstArgs are additional arguments of rank 0, which alone counts the daemon's
	// processor time.
	args, firstArgs []string
}

// run runs one process for each rank, or a single one for all ranks.
func (l *launch) run(ctx context.Context, j job, out io.Writer) error {
	group, ctx := errgroup.WithContext(ctx)
	for rank := range j.ranks {
		args := append([]string{RankCommand}, l.args...)
		if rank == 0 {
			args = append(args, l.firstArgs...)
		}
		args = append(args, "-rank", strconv.Itoa(rank), "-workload", j.w.name)
		for i := 0; i < len(j.parts) && j.w.methods; i++ {
			args = append(args, "-by", j.parts[i].method.String())
		}
		if j.profile != "" {
			args = append(args, "-cpuprofile", fmt.Sprintf("%s.%s.%s.%d.pprof", j.profile, j.w.name, l.key, rank))
		}
		group.Go(func() error {
			cmd := command(ctx, l.self, append(args, j.arguments()...)...)
			cmd.do = j.hosts.on(rank)
			// The rank exits when its standard input is closed, which happens at the latest when this process exits.
			stdin, err := cmd.StdinPipe()
			if err != nil {
				return err
			}
			defer stdin.Close()
			if rank == 0 {
				cmd.Stdout = out
			}
			return cmd.run()
		})
	}
	return group.Wait()
}

// startDaemon starts a daemon and waits until it is ready.
func startDaemon(ctx context.Context, self, file string) (pid int, stop func() error, err error) {
	cmd := command(ctx, self, RankCommand, daemonCommand, file)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 0, nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 0, nil, err
	}
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	stop = func() error {
		stdin.Close() // stops it
		return cmd.wait()
	}
	ready, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		if !errors.Is(err, io.EOF) {
			return 0, nil, errors.Join(err, stop())
		}
		return 0, nil, fmt.Errorf("the daemon ends at once: %w", errors.Join(errNotReady, stop()))
	}
	if !strings.HasPrefix(ready, "ready") {
		return 0, nil, errors.Join(fmt.Errorf("%w: %q", errNotReady, ready), stop())
	}
	return cmd.Process.Pid, stop, nil
}

var errNotReady = errors.New("the daemon does not say that it is ready")
