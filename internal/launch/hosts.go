package launch

import (
	"fmt"
	"strings"
)

// EnvHostFile is hydra's environment variable for the path of a host file, which contains one host per line, and
// comments after #.
const EnvHostFile = "HYDRA_HOST_FILE"

// HostsOf returns the hosts named in the text of a host file.
func HostsOf(text string) (hosts []string) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if fields := strings.Fields(line); len(fields) > 0 {
			hosts = append(hosts, fields[0])
		}
	}
	return hosts
}

// Hydra returns the command line by which MPICH's launcher runs a job on hosts. A host is a name or an address,
// optionally followed by a colon and the number of ranks that the launcher assigns to it in each turn. If hosts is
// empty, hydra reads the host file.
func (j *Job) Hydra(hosts []string) []string {
	args := []string{"mpiexec.hydra"}
	if len(hosts) > 0 {
		args = append(args, "-hosts", strings.Join(hosts, ","))
	}
	if j.Label {
		args = append(args, "-prepend-rank")
	}
	if j.Bind {
		args = append(args, "-bind-to", "core")
	}
	args = append(args, hydraEnv("-genv", j.Env)...)
	for i, program := range j.Programs {
		if i > 0 {
			args = append(args, ":")
		}
		args = append(args, "-n", fmt.Sprint(program.Ranks))
		if program.Dir != "" {
			args = append(args, "-wdir", program.Dir)
		}
		args = append(append(args, hydraEnv("-env", program.Env)...), program.Args...)
	}
	return args
}

func hydraEnv(option string, env []string) (args []string) {
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		args = append(args, option, name, value)
	}
	return args
}

// Srun returns the command line by which Slurm runs a job on the nodes of an allocation, and the environment variables
// that it needs in addition to this process's environment.
func (j *Job) Srun() (args, env []string, err error) {
	if len(j.Programs) > 1 {
		return nil, nil, fmt.Errorf("%d programs: zrlctl has srun start one program for all ranks: call srun "+
			"--mpi=pmi2 --multi-prog, or give --hosts", len(j.Programs))
	}
	program := j.Programs[0]
	args = []string{"srun", "--mpi=pmi2", "-n", fmt.Sprint(program.Ranks)}
	if j.Label {
		args = append(args, "--label")
	}
	if j.Bind {
		args = append(args, "--cpu-bind=cores")
	}
	if program.Dir != "" {
		args = append(args, "--chdir", program.Dir)
	}
	return append(args, program.Args...), append(append(env, j.Env...), program.Env...), nil
}

// Allocation describes the Slurm allocation whose nodes run the job. It returns "" outside of an allocation, or if the
// allocation is this host only.
func Allocation(getenv func(string) string) string {
	job, nodes := getenv("SLURM_JOB_ID"), getenv("SLURM_JOB_NUM_NODES")
	if job == "" || nodes == "" || nodes == "1" && getenv("SLURMD_NODENAME") != "" {
		return ""
	}
	return fmt.Sprintf("Slurm's job %s (nodes: %s)", job, nodes)
}
