package main

import (
	"cmp"
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/capture/perfetto"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/internal/words"
)

type traceFlags struct {
	output   string
	duration time.Duration
	job      string
}

func (a *app) traceCommand() *cobra.Command {
	var flags traceFlags
	cmd := &cobra.Command{
		Use: "trace -o FILE", Short: "Record messages and calls of the daemon's ranks as a trace",
		Args: cobra.NoArgs,
		Long: `Record the messages of the daemon's ranks as a trace for ui.perfetto.dev, until interrupted
or for the duration of --for. A rank is a process, with a track for each peer: a message is
a slice with its phases, and an arrow leads to its slice at the receiver. The calls of the
rank's program are on another track: sends, receives and collective calls by name. Counters
show the rank's posted receives, unexpected messages and sends in flight. Problems have a
separate track.

The trace contains the messages that the flight recorder records; messages through shared
memory need record.shared_memory in the configuration. The file is valid at any time. A
message or call is written when it is complete, or at the end.

With --job, trace the job's ranks on this host, except for messages that do not use a
network. zrlctl run, MPICH's mpiexec and srun start jobs.`,
		Example: `  zrlctl trace -o run.perfetto-trace --for 30s
  zrlctl trace -o job.perfetto-trace --job zrlctl_4711`,
		RunE: operation(func(cmd *cobra.Command, _ []string) error {
			return a.trace(cmd.Context(), &flags, cmd.OutOrStdout())
		}),
	}
	fl := cmd.Flags()
	fl.StringVarP(&flags.output, "output", "o", "", "write to this file; - is standard output")
	fl.StringVar(&flags.job, "job", "", "trace this job instead of a daemon")
	fl.DurationVar(&flags.duration, "for", 0, "end after this time (default: when interrupted)")
	return cmd
}

// traceSummary describes a trace file.
type traceSummary struct {
	File     string `json:"file"`
	Messages int64  `json:"messages"`
	Calls    int64  `json:"calls"`
	Findings int64  `json:"findings"`
	// Seconds is the duration of the trace.
	Seconds float64 `json:"duration_seconds"`
}

func (a *app) trace(ctx context.Context, flags *traceFlags, stdout io.Writer) error {
	switch {
	case flags.output == "":
		return usageErrorf("--output is missing: name the file to be written, or - for standard output")
	case flags.duration < 0:
		return usageErrorf("--for %v: must be at least 0s", flags.duration)
	}
	begun := time.Now()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	source, err := a.openPackets(ctx, flags.job, control.CaptureRequest{Follow: true, Duration: flags.duration})
	if err != nil {
		return err
	}
	defer source.Close()
	summary := traceSummary{File: flags.output}
	write := func(out io.Writer) error {
		live := perfetto.NewLive(out, source.profile)
		note := func(n pcapng.RankNote) {
			if live.AddNote(n); live.Err() != nil {
				stop() // do not wait for the next packet
			}
		}
		src, err := source.asSource(capture.Options{OnNote: note})
		if err == nil {
			defer src.Close()
			err = live.ProcessAll(src)
		}
		summary.Messages, summary.Calls, summary.Findings = live.Messages(), live.Calls(), live.Findings()
		return cmp.Or(live.Err(), recordingError(ctx, err, true))
	}
	if flags.output == "-" {
		return write(stdout)
	}
	if err := createFile(flags.output, write); err != nil {
		return err
	}
	summary.Seconds = time.Since(begun).Seconds()
	return a.print(stdout, summary, "%s: %s and %s in %.1f s, %s; open it with https://ui.perfetto.dev\n",
		summary.File, words.Plural(int(summary.Messages), "message"), words.Plural(int(summary.Calls),
			"call"), summary.Seconds,
		words.Plural(int(summary.Findings), "finding"))
}
