package bench

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/node"
)

// RankCommand is the first argument with which a program starts itself as a rank of zrlmpid, as the daemon that ranks
// attach to, or as the neighbour that disturbs them. It is for internal use.
const RankCommand = "bench-rank"

// daemonCommand follows RankCommand to start the daemon.
const daemonCommand = "daemon"

// closeTime limits how long a rank waits for its last messages to be acknowledged.
const closeTime = 5 * time.Second

// rankFlags holds the command-line arguments of a rank.
type rankFlags struct {
	config, workload, attach, profile string
	rank, daemon, together            int
	methods                           []method
	warm                              time.Duration
	// countPath means that the rank's configuration has a path, and that datagrams which do not use it are an error. raw
	// means that the path is used without an engine.
	countPath, raw bool
	// uncounted means that another rank already counts the resource usage of this process.
	uncounted bool
}

// RunRank runs the steps of a workload on a rank, in a separate process. args are the arguments after RankCommand. It
// returns when ctx is done, or when stdin is closed, as happens when the parent process exits.
func RunRank(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // any error ends the rank, too
		cancel()
	}()
	if len(args) == 2 {
		switch args[0] {
		case daemonCommand:
			return runDaemon(ctx, args[1], stdout)
		case neighbourCommand:
			return runNeighbour(ctx, args[1])
		}
	}
	var flags rankFlags
	set := flag.NewFlagSet(RankCommand, flag.ContinueOnError)
	set.SetOutput(io.Discard) // the returned error contains it
	set.StringVar(&flags.config, "config", "", "configuration `file`")
	set.IntVar(&flags.rank, "rank", 0, "which of its ranks")
	set.StringVar(&flags.attach, "attach", "", "attach to a daemon by this `socket` instead")
	set.IntVar(&flags.daemon, "daemon", 0, "its process, whose use of the machine counts")
	set.IntVar(&flags.together, "together", 0, "be all of so many ranks")
	set.BoolVar(&flags.countPath, "path", false, "check that datagrams use the configured path")
	set.BoolVar(&flags.raw, "raw", false, "exchange datagrams by AF_XDP without an engine")
	set.StringVar(&flags.workload, "workload", "", "what to do")
	set.Func("by", "carry broadcasts out so, as in chain:64KiB or atomic/by-left, and others of these in turn",
		func(text string) error {
			m, err := parseMethod(text)
			flags.methods = append(flags.methods, m)
			return err
		})
	set.StringVar(&flags.profile, "cpuprofile", "", "write a CPU profile to this `file`")
	if err := set.Parse(args); err != nil {
		return err
	}
	w, err := workloadNamed(flags.workload)
	if err != nil {
		return err
	}
	texts := set.Args()
	if len(texts) > 0 && strings.HasPrefix(texts[0], warmPrefix) {
		if flags.warm, err = parseWarm(texts[0]); err != nil {
			return err
		}
		texts = texts[1:]
	}
	var steps []step
	for _, text := range texts {
		s, err := parseStep(text)
		if err != nil {
			return err
		}
		steps = append(steps, s)
	}
	if flags.profile != "" {
		stop, err := startProfile(flags.profile)
		if err != nil {
			return err
		}
		return errors.Join(flags.runAll(ctx, w, steps, stdout), stop())
	}
	return flags.runAll(ctx, w, steps, stdout)
}

// runAll runs the rank, or all ranks of the process. If there are several, the first one counts the resource usage of
// the process.
func (f *rankFlags) runAll(ctx context.Context, w *workload, steps []step, stdout io.Writer) error {
	group, ctx := errgroup.WithContext(ctx)
	for i := range max(f.together, 1) {
		one := *f
		one.rank += i
		one.uncounted = i > 0
		group.Go(func() error { return one.run(ctx, w, steps, stdout) })
	}
	return group.Wait()
}

// run opens the rank, runs the steps, and closes the rank.
func (f *rankFlags) run(ctx context.Context, w *workload, steps []step, stdout io.Writer) error {
	if f.raw {
		return runRawPath(ctx, f, steps, stdout)
	}
	dev, err := f.open(ctx)
	if err != nil {
		return err
	}
	sess := session{ctx: ctx, out: stdout, methods: []method{{}}, warm: f.warm, used: f.used, memory: f.memory}
	if r, ok := dev.(*pathRank); ok {
		sess.countPath = r.count
	}
	if len(f.methods) > 0 {
		sess.methods = f.methods
		sess.order = &orderer{Device: dev}
		dev = sess.order
	}
	world, err := mpi.New(dev)
	if err != nil {
		return err
	}
	sess.comm = world
	err = sess.run(w, steps)
	if err != nil {
		err = fmt.Errorf("rank %d: %w", f.rank, err)
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	return errors.Join(err, world.Finalize(end))
}

func (f *rankFlags) open(ctx context.Context) (mpe.Device, error) {
	if f.countPath {
		r, err := openWithPath(f.config, f.rank)
		if err != nil {
			return nil, err // not a non-nil Device that holds a nil pointer
		}
		return r, nil
	}
	if f.attach == "" {
		return node.OpenFile(f.config, f.rank)
	}
	c, err := attach.Dial(ctx, f.attach, f.rank)
	if err != nil {
		return nil, err // avoid a non-nil Device with a nil *attach.Client
	}
	return c, nil
}

// used returns the processor time used by this rank, and by the daemon if this rank counts it.
func (f *rankFlags) used() time.Duration {
	if f.uncounted {
		return 0
	}
	used := processorTime()
	if f.daemon > 0 {
		used += threadsTime(f.daemon)
	}
	return used
}

func (f *rankFlags) memory() int {
	kib := peakMemory("self")
	if f.daemon > 0 {
		kib = max(kib, peakMemory(strconv.Itoa(f.daemon)))
	}
	return kib
}

// runDaemon runs a daemon until ctx is done. It prints a line on stdout when the daemon is ready.
func runDaemon(ctx context.Context, file string, stdout io.Writer) error {
	cfg, err := config.Load(file)
	if err != nil {
		return err
	}
	d, err := daemon.New(cfg, daemon.Options{ReadyWriter: stdout, ConfigSource: file})
	if err != nil {
		return err
	}
	return d.Run(ctx)
}

// startProfile starts a CPU profile. stop ends the profile and writes it to the file.
func startProfile(path string) (stop func() error, err error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	var profile bytes.Buffer // because the profiler does not return write errors
	if err := pprof.StartCPUProfile(&profile); err != nil {
		f.Close()
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		_, err := profile.WriteTo(f)
		return errors.Join(err, f.Close())
	}, nil
}
