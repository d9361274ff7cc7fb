package launch

import (
	"strings"
	"testing"
)

func TestCommandsOfOtherLaunchers(t *testing.T) {
	one := Job{Programs: []Program{{Ranks: 8, Args: []string{"./app", "-n", "x"}}}}
	all := Job{
		Label: true, Bind: true, Env: []string{"ZRLMPI_CONFIG=/a.yaml"},
		Programs: []Program{{Ranks: 1, Args: []string{"a"}, Dir: "/tmp", Env: []string{"A=1=2"}},
			{Ranks: 2, Args: []string{"b", "c"}}},
	}
	first := all
	first.Programs = all.Programs[:1]
	for _, tt := range []struct {
		job              *Job
		hydra, srun, env string
	}{
		{&one, "mpiexec.hydra -hosts x,y:2 -n 8 ./app -n x", "srun --mpi=pmi2 -n 8 ./app -n x", ""},
		{&all, "mpiexec.hydra -hosts x,y:2 -prepend-rank -bind-to core -genv ZRLMPI_CONFIG /a.yaml -n 1 -wdir /tmp " +
			"-env A 1=2 a : -n 2 b c",
			"2 programs: zrlctl has srun start one program for all ranks: call srun --mpi=pmi2 --multi-prog, or " +
				"give --hosts", ""},
		{&first, "mpiexec.hydra -hosts x,y:2 -prepend-rank -bind-to core -genv ZRLMPI_CONFIG /a.yaml -n 1 -wdir /tmp " +
			"-env A 1=2 a",
			"srun --mpi=pmi2 -n 1 --label --cpu-bind=cores --chdir /tmp a", "ZRLMPI_CONFIG=/a.yaml A=1=2"},
	} {
		if got := strings.Join(tt.job.Hydra([]string{"x", "y:2"}), " "); got != tt.hydra {
			t.Errorf("hydra: %s, want %s", got, tt.hydra)
		}
		args, env, err := tt.job.Srun()
		got := strings.Join(args, " ")
		if err != nil {
			got = err.Error()
		}
		if got != tt.srun || strings.Join(env, " ") != tt.env {
			t.Errorf("srun: %s, %s, want %s, %s", got, env, tt.srun, tt.env)
		}
	}
}

func TestAllocation(t *testing.T) {
	for _, tt := range []struct {
		job, nodes, node, want string
	}{
		{"", "", "", ""},
		{"7", "1", "node0", ""},
		{"7", "1", "", "Slurm's job 7 (nodes: 1)"}, // as after salloc on another host
		{"7", "3", "node0", "Slurm's job 7 (nodes: 3)"},
	} {
		env := map[string]string{"SLURM_JOB_ID": tt.job, "SLURM_JOB_NUM_NODES": tt.nodes, "SLURMD_NODENAME": tt.node}
		if got := Allocation(func(name string) string { return env[name] }); got != tt.want {
			t.Errorf("%v: %q", env, got)
		}
	}
}
