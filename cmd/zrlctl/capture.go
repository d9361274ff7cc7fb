package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/internal/words"
	"github.com/zrlmpi/zrlmpid/node/recorder"
	"github.com/zrlmpi/zrlmpid/protocol"
)

type captureFlags struct {
	output string
	last   time.Duration
	follow bool
	job    string
}

func (a *app) captureCommand() *cobra.Command {
	var flags captureFlags
	cmd := &cobra.Command{
		Use: "capture -o FILE", Short: "Write the packets that the daemon has recorded to a file", Args: cobra.NoArgs,
		Long: `Write the most recent packets of the daemon's ranks to a pcapng file. The daemon's flight
recorder keeps them in memory, so no tool has to run when a problem occurs, and no
permission to open packet sockets is needed. Packets that were dropped, retransmitted or
part of a problem have a comment that explains it. The header and the beginning of the
payload of each packet are recorded. How far back the packets reach depends on the traffic
and on record.memory in the configuration.

With --follow, write packets as they are recorded, until interrupted.

With --job, write the packets that the job's ranks on this host exchange over a network.
zrlctl run, MPICH's mpiexec and srun start jobs.`,
		Example: `  zrlctl capture -o hang.pcapng && zrlctl analyze hang.pcapng
  zrlctl capture --last 30s -o last.pcapng
  zrlctl capture --follow -o - | wireshark -k -i -`,
		RunE: operation(func(cmd *cobra.Command, _ []string) error {
			return a.capture(cmd.Context(), &flags, cmd.OutOrStdout())
		}),
	}
	fl := cmd.Flags()
	fl.StringVarP(&flags.output, "output", "o", "", "write to this file; - is standard output")
	fl.DurationVar(&flags.last, "last", 0,
		"only packets from this long ago until now; with --follow, start with them (default: all, or none with --follow)")
	fl.StringVar(&flags.job, "job", "", "write the packets of this job instead of a daemon's")
	fl.BoolVar(&flags.follow, "follow", false, "continue with new packets until interrupted")
	return cmd
}

func (a *app) capture(ctx context.Context, flags *captureFlags, stdout io.Writer) error {
	switch {
	case flags.output == "":
		return usageErrorf("--output is missing: name the file to be written, or - for standard output")
	case flags.last < 0:
		return usageErrorf("--last %v: must be at least 0s", flags.last)
	}
	source, err := a.openPackets(ctx, flags.job, control.CaptureRequest{MaxAge: flags.last, Follow: flags.follow})
	if err != nil {
		return err
	}
	defer source.Close()
	profile := source.profile
	write := func(out io.Writer) error {
		switch {
		case flags.follow:
			return copyPackets(ctx, out, source)
		case source.body == nil:
			return writeJobPackets(ctx, out, source, flags.job)
		}
		_, err := io.Copy(out, source.body)
		return err
	}
	if flags.output == "-" {
		return write(stdout)
	}
	if err := createFile(flags.output, write); err != nil {
		return err
	}
	return a.describeCapture(flags.output, profile, stdout)
}

// copyPackets writes packets to out as they arrive, with findings as comments. It returns when ctx is done, or when the
// daemon or job exits.
func copyPackets(ctx context.Context, out io.Writer, p *packetSource) error {
	return recordingError(ctx,
		capture.CopyAnnotated(out, recorder.FileOptions("live packets from zrlmpid"), p.asSource, p.profile), true)
}

// captureSummary describes a file of captured packets.
type captureSummary struct {
	File    string `json:"file"`
	Packets int64  `json:"packets"`
	// Seconds is the time from the first packet to the end.
	Seconds float64 `json:"duration_seconds"`
	// Findings is the number of findings that zrlctl analyze reports for the file.
	Findings int `json:"findings"`
}

// describeCapture prints a summary of a file of captured packets.
func (a *app) describeCapture(path string, profile protocol.Profile, stdout io.Writer) error {
	src, err := capture.Options{}.OpenFile(path)
	if err != nil {
		return err
	}
	defer src.Close()
	analysis := capture.NewAnalysis(path, capture.AnalysisOptions{Profile: profile})
	if err := analysis.Analyze(src); err != nil {
		return err
	}
	r := analysis.Report()
	summary := captureSummary{File: path, Packets: r.Summary.Packets, Seconds: r.Summary.Seconds,
		Findings: len(r.Findings)}
	text := fmt.Sprintf("%s: %s in %.3f s, %s", path, words.Plural(int(summary.Packets), "packet"), summary.Seconds,
		words.Plural(summary.Findings, "finding"))
	if summary.Packets > 0 {
		flag := ""
		if profile == protocol.V09 {
			flag = " --profile v0.9"
		}
		text += fmt.Sprintf("; read it with: zrlctl analyze %s%s", path, flag)
	}
	return a.print(stdout, summary, "%s\n", text)
}
