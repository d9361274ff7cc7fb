package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/zrlmpi/zrlmpid/internal/launch"
	"github.com/zrlmpi/zrlmpid/mpi/job"
	"github.com/zrlmpi/zrlmpid/node"
)

// externalJob describes a job that an external launcher runs.
type externalJob struct {
	// reason names the hosts and explains why the job runs on them.
	reason string
	// bySrun is set if srun launches the job, on the nodes of a Slurm allocation. Otherwise hydra launches it.
	bySrun bool
	// hosts lists the hosts on which hydra logs in.
	hosts []string
}

// externalLaunch describes how to launch the job on other hosts. It returns nil if the job runs only on this host.
func (f *runFlags) externalLaunch() (*externalJob, error) {
	if f.hosts != nil {
		return &externalJob{reason: "--hosts " + strings.Join(f.hosts, ","), hosts: f.hosts}, nil
	}
	if file := os.Getenv(launch.EnvHostFile); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", launch.EnvHostFile, err)
		}
		return &externalJob{reason: launch.EnvHostFile + "=" + file, hosts: launch.HostsOf(string(text))}, nil
	}
	if why := launch.Allocation(os.Getenv); why != "" {
		return &externalJob{reason: why, bySrun: true}, nil
	}
	return nil, nil
}

// launchExternally replaces this process by an external launcher. It returns only on failure.
func (f *runFlags) launchExternally(ctx context.Context, e *externalJob, j *launch.Job, cluster *jobCluster,
	say func(string)) error {
	if f.cluster.cluster != "" || f.cluster.standIn != "" || f.trace != "" {
		return usageErrorf("%s: --cluster, --stand-in and --trace are for a job on one host: give a configuration that "+
			"all hosts have with --config", e.reason)
	}
	if cluster != nil {
		if err := cluster.checkPrograms(j.Programs); err != nil {
			return err
		}
		j.Env = []string{node.EnvFPGATimeout + "=" + cluster.fpgaTimeout.String(), job.EnvConfig + "=" + cluster.file}
	}
	args, env := j.Hydra(f.hosts), []string(nil)
	needs := "jobs on several hosts need MPICH's launcher (Debian's package mpich)"
	if e.bySrun {
		var err error
		if args, env, err = j.Srun(); err != nil {
			return &usageError{err}
		}
		needs = "install Slurm's client, or give --hosts"
	}
	if _, err := exec.LookPath(args[0]); err != nil {
		return fmt.Errorf("%s: %w: %s", e.reason, err, needs)
	}
	if err := j.CheckHosts(ctx, e.hosts); err != nil {
		return err
	}
	say(e.reason + ": running " + strings.Join(args, " "))
	return launch.Replace(args, env)
}

// checkHosts returns an error if hosts is empty but not nil, or if the name of a host is invalid.
func checkHosts(hosts []string) error {
	if hosts != nil && len(hosts) == 0 {
		hosts = []string{""}
	}
	for _, h := range hosts {
		if h == "" || strings.HasPrefix(h, "-") || strings.HasPrefix(h, ":") {
			return errors.New("give names or addresses, as in node1,node2:4")
		}
	}
	return nil
}
