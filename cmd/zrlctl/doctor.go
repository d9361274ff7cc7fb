package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/diagnosis/doctor"
	"github.com/zrlmpi/zrlmpid/diagnosis/doctor/system"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

func (a *app) doctorCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "doctor", Short: "Examine this host and the paths to other ranks", Args: cobra.NoArgs,
		Long: `Check whether this host and the network meet the requirements of the local ranks. Each check
prints right, wrong or unknown, what it found, and how to fix it: rank map, addresses,
duplicate addresses, ports, interfaces, routes, reverse path filter, ARP, path MTU, receive
buffers, UDP offload, clock, open files, and lost packets.

The configuration is read from the running daemon, or from FILE, which needs no daemon. On
each path to another host, doctor sends ICMP echo requests with the length of the longest
datagram; it sends nothing to the ranks. A firewall shows as a path without an answer. As
root, doctor also sends ARP probes for the addresses of ranks, and finds the processes of
other users.

Exit codes: 0 nothing is wrong; 1 something is wrong; otherwise as zrlctl. Unknown is not wrong.`,
		Example: "  sudo zrlctl doctor\n  zrlctl doctor --config /etc/zrlmpid/zrlmpid.yaml",
		RunE: operation(func(cmd *cobra.Command, _ []string) error {
			e, err := a.newExamination(cmd.Context(), file)
			if err != nil {
				return err
			}
			report := e.report(cmd.Context())
			if a.json {
				err = writeJSON(cmd.OutOrStdout(), report)
			} else {
				_, err = io.WriteString(cmd.OutOrStdout(), report.Text())
			}
			if err == nil && report.HasWrong() {
				err = errFindings
			}
			return err
		}),
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration `FILE` (default: the running daemon's configuration)")
	return cmd
}

// examination holds what the commands doctor and bundle examine.
type examination struct {
	plan   *doctor.Plan
	config *config.Config // nil if unreadable
	status *state.Status  // nil without a daemon
	facts  *doctor.Facts  // nil until report
	socket string         // of the daemon
}

// newExamination reads the configuration file with the given name, or the running daemon's configuration.
func (a *app) newExamination(ctx context.Context, file string) (*examination, error) {
	e := new(examination)
	if file != "" {
		cfg, err := config.Load(file)
		if _, unread := errors.AsType[*fs.PathError](err); unread {
			return nil, &usageError{err}
		}
		if err != nil {
			e.plan = doctor.InvalidPlan(file, err)
			return e, nil
		}
		e.config, e.plan = cfg, doctor.PlanFromConfig(file, cfg)
		err = e.queryStatus(ctx, cfg.ControlSocket())
		if _, none := errors.AsType[*control.UnreachableError](err); none {
			err = nil
		}
		return e, err
	}
	if err := e.queryStatus(ctx, a.socket); err != nil {
		return nil, fmt.Errorf("%w; without a daemon, give its configuration with --config", err)
	}
	// The daemon has no file to read if it was started with --cluster or reads its configuration from standard input. A
	// relative path is useless, because zrlctl may run in another directory.
	if name := e.status.Config; filepath.IsAbs(name) {
		if cfg, err := config.Load(name); err == nil {
			e.config, e.plan = cfg, doctor.PlanFromConfig(name, cfg)
			return e, nil
		}
	}
	e.plan = doctor.PlanFromStatus(e.status)
	return e, nil
}

// queryStatus queries the status of the daemon at the given socket.
func (e *examination) queryStatus(ctx context.Context, socket string) error {
	e.socket = socket
	client := control.NewClient(socket)
	defer client.Close()
	s, err := client.Status(ctx)
	if err == nil {
		e.status = &s
	}
	return err
}

// report gathers the facts and examines them.
func (e *examination) report(ctx context.Context) *doctor.Report {
	pid := 0
	if e.status != nil {
		pid = e.status.PID
	}
	e.facts = system.Gather(ctx, e.plan, pid)
	return doctor.Examine(e.plan, e.facts, e.status)
}
