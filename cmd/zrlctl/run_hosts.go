package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/zrlmpi/zrlmpid/internal/launch"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// onHosts runs a job by the launcher of another project if it is one of several hosts: by hydra on those of --hosts, by srun
// in a Slurm allocation. Then it does not return unless that fails; done is false if the job is one of this host.
func (f *runFlags) onHosts(ctx context.Context, j *launch.Job, cluster *jobCluster, say func(string)) (done bool, err error) {
	why := launch.Allocation(os.Getenv)
	switch {
	case f.hosts != nil:
		why = fmt.Sprintf("--hosts %s", strings.Join(f.hosts, ","))
	case why == "":
		return false, nil
	}
	if f.cluster.cluster != "" || f.cluster.standIn != "" || f.trace != "" {
		return true, usagef("%s: --cluster, --stand-in and --trace are for a job on one host: give a configuration that all hosts have with --config", why)
	}
	if cluster != nil {
		if err := cluster.fits(j.Programs); err != nil {
			return true, err
		}
		j.Env = []string{mpi.EnvConfig + "=" + cluster.file}
	}
	var args, env []string
	if f.hosts != nil {
		args = j.Hydra(f.hosts)
	} else if args, env, err = j.Srun(); err != nil {
		return true, &usageError{err}
	}
	if _, err := exec.LookPath(args[0]); err != nil {
		return true, fmt.Errorf("%s: %w: %s", why, err, map[string]string{
			"mpiexec.hydra": "jobs on several hosts need it (Debian's package mpich)", "srun": "install Slurm's client, or give --hosts",
		}[args[0]])
	}
	if f.hosts != nil {
		if err := j.CheckHosts(ctx, f.hosts); err != nil {
			return true, err
		}
	}
	say(fmt.Sprintf("%s: running %s", why, strings.Join(args, " ")))
	return true, launch.Replace(args, env)
}

// checkHosts wants names in a list of hosts.
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
