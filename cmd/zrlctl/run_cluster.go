package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/config/cluster"
	"github.com/zrlmpi/zrlmpid/daemon"
	"github.com/zrlmpi/zrlmpid/internal/launch"
	"github.com/zrlmpi/zrlmpid/internal/privatedir"
	"github.com/zrlmpi/zrlmpid/mpi/job"
	"github.com/zrlmpi/zrlmpid/node"
)

// clusterFlags holds the flags that define the ranks of a job, including those that do not run as processes of the job.
type clusterFlags struct {
	cluster, config, addresses, standIn string
	fpgas                               []int
	fpgaTimeout                         time.Duration
}

func (f *clusterFlags) addTo(fl *pflag.FlagSet) {
	fl.StringVar(&f.cluster, "cluster", "",
		"all ranks of the job: upstream's cluster.json or the answer of the resource manager")
	fl.StringVar(&f.config, "config", "", "all ranks of the job: a configuration of zrlmpid")
	fl.StringVar(&f.addresses, "addresses", "",
		"with --cluster: addresses of the ranks in rank order, as in 127.0.0.1-127.0.0.4 or 10.1.0.0/24")
	fl.IntSliceVar(&f.fpgas, "fpga", nil,
		"with --cluster: ranks to treat as FPGAs, if the file lists them as both CPU and FPGA")
	fl.DurationVar(&f.fpgaTimeout, "fpga-timeout", 2*time.Minute, "with --cluster or --config: end the job when an "+
		"FPGA has not answered for this long since a rank sent its first message to it, or the program of a "+
		"stand-in has failed for this long; 0s: never")
	fl.StringVar(&f.standIn, "stand-in", "",
		`kernel that replaces the FPGAs on this host: echo, ring, sink, source, jacobi, kmeans, matvec, backsub, "exec:/path/prog args", "rtl:/path/simulator args" or "rtl-net:/path/simulator args"`)
}

// jobCluster describes all ranks of a job.
type jobCluster struct {
	cfg *config.Config
	// file is the configuration file that the processes read. If it is empty, configPath writes a temporary file.
	file string
	// ranks lists the ranks that run as processes.
	ranks []int
	// fpgaTimeout limits the time for which an FPGA may leave packets unanswered, and for which the kernel of a
	// stand-in may fail again and again. 0 means no limit.
	fpgaTimeout time.Duration
}

// load returns the ranks that the flags define, or nil if none of the flags is set. Its errors concern only the command
// line and the files that it names.
func (f *clusterFlags) load() (*jobCluster, error) {
	switch {
	case f.fpgaTimeout < 0:
		return nil, fmt.Errorf("--fpga-timeout %v: give a time, or 0s for none", f.fpgaTimeout)
	case f.cluster != "" && f.config != "":
		return nil, errors.New("give --cluster or --config, not both")
	case f.cluster == "" && (f.addresses != "" || f.fpgas != nil):
		return nil, errors.New("--addresses and --fpga: only valid with --cluster")
	case f.cluster == "" && f.config == "" && f.standIn != "":
		return nil, errors.New("--stand-in: only valid with --cluster or --config, which define the FPGA ranks")
	case f.cluster == "" && f.config == "":
		return nil, nil
	}
	c := &jobCluster{fpgaTimeout: f.fpgaTimeout}
	var err error
	if f.cluster != "" {
		c.cfg, err = f.fromCluster()
	} else {
		c.cfg, c.file, err = f.fromConfig()
	}
	if err != nil {
		return nil, err
	}
	if c.ranks = node.JobRanks(c.cfg); len(c.ranks) == 0 {
		return nil, fmt.Errorf("%s: no rank is for a program: give at least one run: host", f.config)
	}
	return c, nil
}

func (f *clusterFlags) fromCluster() (*config.Config, error) {
	c, err := cluster.Load(f.cluster)
	if err != nil {
		return nil, err
	}
	options := cluster.JobOptions{FPGA: f.fpgas, Kernel: f.standIn}
	if f.addresses != "" {
		if options.Addresses, err = cluster.ParsePool(f.addresses); err != nil {
			return nil, err
		}
	}
	return c.JobConfig(options)
}

func (f *clusterFlags) fromConfig() (cfg *config.Config, file string, err error) {
	if file, err = filepath.Abs(f.config); err != nil { // programs may have other working directories
		return nil, "", err
	}
	if cfg, err = config.Load(file); err != nil {
		return nil, "", err
	}
	if f.standIn != "" {
		kernel, err := config.ParseKernel(f.standIn)
		if err != nil {
			return nil, "", err
		}
		cfg.ReplaceFPGAs(kernel)
	}
	return cfg, file, nil
}

// places returns the rank and address of each process.
func (c *jobCluster) places() []launch.ProcessRank {
	places := make([]launch.ProcessRank, len(c.ranks))
	for i, rank := range c.ranks {
		places[i] = launch.ProcessRank{Rank: rank, Address: c.cfg.Rank(rank).Address.String()}
	}
	return places
}

// checkPrograms returns an error unless the number of processes equals the number of CPU ranks.
func (c *jobCluster) checkPrograms(programs []launch.Program) error {
	n := 0
	for _, p := range programs {
		n += p.Ranks
	}
	if n == len(c.ranks) {
		return nil
	}
	return usageErrorf("the cluster has %d CPU ranks %v, but the programs have %d: give them the same number with -n",
		len(c.ranks), c.ranks, n)
}

// loopbackCluster returns the ranks of a job that consists only of processes. They get loopback addresses.
func loopbackCluster(programs []launch.Program) *jobCluster {
	c := new(jobCluster)
	var ranks []config.Rank
	ip := netip.AddrFrom4([4]byte{127, 0, 0, 0})
	for _, p := range programs {
		for range p.Ranks {
			ip = ip.Next()
			ranks = append(ranks, config.Rank{Rank: len(ranks),
				Address: config.Address{AddrPort: netip.AddrPortFrom(ip, 0)}, Run: config.RunHost})
		}
	}
	c.cfg = config.New(ranks...)
	c.ranks = node.JobRanks(c.cfg)
	return c
}

// startHelpers checks the addresses of the processes, and starts the job's stand-ins and recording. The returned
// function end stops stand-ins and recording, and returns their errors.
func (c *jobCluster) startHelpers(
	ctx context.Context, j *launch.Job, directory, record string, stderr io.Writer, signals chan<- os.Signal,
) (end func() error, err error) {
	var started []func() error
	all := func() error {
		var errs []error
		for _, f := range slices.Backward(started) {
			errs = append(errs, f())
		}
		return errors.Join(errs...)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, all())
		}
	}()
	if err := node.CheckAddresses(c.cfg, c.ranks); err != nil {
		return nil, err
	}
	var recorder *traceRecorder
	if record != "" {
		c.forceUDP()
		if recorder, err = c.startTrace(ctx, record); err != nil {
			return nil, err
		}
		started = append(started, recorder.finish)
	}
	file, remove, err := c.configPath()
	if err != nil {
		return nil, err
	}
	started = append(started, remove)
	j.Env = append(j.Env, node.EnvFPGATimeout+"="+c.fpgaTimeout.String(), job.EnvConfig+"="+file, job.EnvSocket+"=",
		job.EnvRank+"=")
	d, stop, err := c.startStandIns(ctx, directory, stderr, func() { signals <- syscall.SIGTERM })
	if err != nil {
		return nil, err
	}
	if recorder != nil {
		recorder.standIns.Store(d)
	}
	started = append(started, stop)
	return all, nil
}

// configPath returns the path of the configuration file for the processes. It writes the file if necessary.
func (c *jobCluster) configPath() (path string, remove func() error, err error) {
	if c.file != "" {
		return c.file, func() error { return nil }, nil
	}
	text, err := c.cfg.YAML()
	if err != nil {
		return "", nil, err
	}
	f, err := os.CreateTemp("", "zrlmpi-job-*.yaml")
	if err != nil {
		return "", nil, err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close(), privatedir.MakeParents(f.Name(), 0)); err != nil {
		return "", nil, errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), func() error { return os.Remove(f.Name()) }, nil
}

// startStandIns starts the stand-ins in this process and returns when they are ready. d is nil if the job has no
// stand-ins. If the stand-ins stop early, failed is called, and stop returns the reason.
func (c *jobCluster) startStandIns(
	ctx context.Context, directory string, stderr io.Writer, failed func(),
) (d *daemon.Daemon, stop func() error, err error) {
	cfg := *c.cfg
	cfg.Ranks = slices.Clone(cfg.Ranks)
	local := false
	for i := range cfg.Ranks {
		if r := &cfg.Ranks[i]; r.Run == config.RunStandin {
			local = true
		} else {
			r.Run, r.Allow = "", nil // a process of the job, or remote
		}
	}
	if !local {
		return nil, func() error { return nil }, nil
	}
	none := ""
	cfg.Control.Socket, cfg.Attach.Socket, cfg.StopTimeout = &none, &none, 0
	cfg.SetHTTPListen("")
	ready := make(chan struct{})
	d, err = daemon.New(&cfg,
		daemon.Options{Log: standInLog(stderr), ReadyWriter: closeOnWrite{ready}, JobDirectory: directory,
			FailureLimit: c.fpgaTimeout})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() {
		err := d.Run(ctx)
		early := err != nil && ctx.Err() == nil
		if early {
			err = &standInError{err}
		}
		ended <- err
		if early {
			failed()
		}
	}()
	select {
	case <-ready:
	case err := <-ended:
		cancel()
		return nil, nil, err
	}
	return d, func() error {
		cancel()
		return <-ended
	}, nil
}

// standInError reports that a stand-in failed and thereby ended the job.
type standInError struct{ error }

func (e *standInError) Unwrap() error { return e.error }

// closeOnWrite is a writer that closes a channel when it is first written to.
type closeOnWrite struct{ done chan struct{} }

func (c closeOnWrite) Write(b []byte) (int, error) {
	close(c.done)
	return len(b), nil
}

// standInLog returns a logger for warnings and errors of stand-ins.
func standInLog(to io.Writer) *zap.Logger {
	encoder := zapcore.NewConsoleEncoder(zapcore.EncoderConfig{MessageKey: "message", LevelKey: "level",
		EncodeLevel: func(l zapcore.Level, e zapcore.PrimitiveArrayEncoder) {
			e.AppendString("zrlctl: stand-ins: " + l.String())
		}, EncodeDuration: zapcore.StringDurationEncoder, ConsoleSeparator: ": "})
	return zap.New(zapcore.NewCore(encoder, zapcore.AddSync(to), zapcore.WarnLevel))
}
