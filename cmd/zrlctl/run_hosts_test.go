//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// TestRunHosts: hydra or srun runs a job on several hosts. In this test, both are scripts that print their arguments,
// and ssh is a script that executes its command on this host.
func TestRunHosts(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"mpiexec.hydra": "echo hydra: \"$@\"\nexit 5\n",
		"srun":          "echo srun: \"$@\" A=$A\n",
		"ssh": `host=$6
case $host in
down) echo 'warning: x' >&2; echo 'ssh: connect to host down port 22: Connection refused' >&2; exit 255 ;;
node*) shift 6; exec sh -c "$*" ;;
esac
exit 99
`,
		"app": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	config := filepath.Join(dir, "job.yaml")
	if err := os.WriteFile(config, []byte("ranks:\n  - {rank: 0, address: 10.0.0.1, run: host}\n  - {rank: 1, "+
		"address: 10.0.0.2, run: host}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hostFile := filepath.Join(dir, "hosts")
	if err := os.WriteFile(hostFile, []byte("# hosts\nnode1:2\n\ndown:2 # away\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	slurm := []string{"SLURM_JOB_ID=7", "SLURM_JOB_NUM_NODES=2"}
	for _, tt := range []struct {
		env            []string
		args           []string
		code           int
		stdout, stderr string // regular expressions
	}{
		{args: []string{"--hosts=node1,node2:3", "-n", "8", "app", "it's"}, code: 5,
			stdout: `^hydra: -hosts node1,node2:3 -n 8 app it's\n$`,
			stderr: `^zrlctl: --hosts node1,node2:3: running mpiexec.hydra -hosts node1,node2:3 -n 8 app it's\n$`},
		{args: []string{"--hosts=localhost", "-n1", "--wdir=/tmp", "app"}, code: 5,
			stdout: `^hydra: -hosts localhost -n 1 -wdir /tmp app`},
		{args: []string{"--hosts=node1", "--config", config, "app"}, code: 5,
			stdout: `^hydra: -hosts node1 -genv ZRLMPI_FPGA_TIMEOUT 2m0s -genv ZRLMPI_CONFIG \S*/job.yaml -n 2 app`},
		{args: []string{"--hosts=node1,down,down:2", "-n2", "app"}, code: 1,
			stderr: `^zrlctl: host "down" cannot be used: ssh: connect to host down port 22: Connection refused: ssh down has to work without a question \(errors of 1 more hosts\)\n$`},
		{args: []string{"--hosts=node1", "-n2", "none"}, code: 1,
			stderr: `^zrlctl: host "node1" has no program "none" \(working directory \S+\): all hosts need the same files at the same paths\n$`},
		{args: []string{"--hosts=node1", "-n1", "app", ":", "-n1", "--wdir", "/none", "app"}, code: 1,
			stderr: `^zrlctl: host "node1" has no folder "/none": all hosts need`},
		{env: []string{"HYDRA_LAUNCHER=manual"}, args: []string{"--hosts=down", "-n2", "none"}, code: 5,
			stdout: "^hydra: "},
		{env: []string{"PATH=/none"}, args: []string{"--hosts=node1", "-n2", "app"}, code: 1,
			stderr: `^zrlctl: --hosts node1: exec: "mpiexec.hydra": executable file not found in \$PATH: .*package mpich`},
		{args: []string{"--hosts=node1", "--config", config, "-n3", "app"}, code: 2,
			stderr: "the cluster has 2 CPU ranks"},
		{args: []string{"--hosts=node1", "--config", config, "--stand-in=echo", "app"}, code: 2,
			stderr: "are for a job on one host"},
		{args: []string{"--hosts=", "-n1", "app"}, code: 2, stderr: "^zrlctl: --hosts : give names or addresses"},
		{args: []string{"--hosts=a,-x", "-n1", "app"}, code: 2,
			stderr: "^zrlctl: --hosts a,-x: give names or addresses"},
		{env: []string{"HYDRA_HOST_FILE=" + hostFile}, args: []string{"-n8", "app"}, code: 1,
			stderr: `^zrlctl: host "down" cannot be used`},
		{env: []string{"HYDRA_HOST_FILE=" + hostFile, "HYDRA_LAUNCHER=manual"}, args: []string{"-n8", "app"}, code: 5,
			stdout: `^hydra: -n 8 app\n$`},
		{env: []string{"HYDRA_HOST_FILE=/none"}, args: []string{"-n8", "app"}, code: 1,
			stderr: "HYDRA_HOST_FILE: open /none: no such file"},
		{env: slurm, args: []string{"-n", "4", "--env=A=b", "app"}, stdout: `^srun: --mpi=pmi2 -n 4 app A=b\n$`,
			stderr: `^zrlctl: Slurm's job 7 \(nodes: 2\): running srun --mpi=pmi2 -n 4 app\n$`},
		{env: slurm, args: []string{"-n", "4", "app", ":", "-n1", "app"}, code: 2, stderr: "2 programs: "},
		// launched by srun
		{env: slurm, args: []string{"--hosts=down", "-n", "4", "app"}, code: 5, stdout: "^hydra: "},
	} {
		c := exec.CommandContext(t.Context(), self, append([]string{"run"}, tt.args...)...)
		c.Env = append(append(os.Environ(), "PATH="+dir+":/usr/bin:/bin"), tt.env...)
		var stdout, stderr bytes.Buffer
		c.Stdout, c.Stderr = &stdout, &stderr
		_ = c.Run()
		if code := c.ProcessState.ExitCode(); code != tt.code || !regexp.MustCompile(tt.stdout).Match(stdout.Bytes()) ||
			!regexp.MustCompile(tt.stderr).Match(stderr.Bytes()) {
			t.Errorf("%q: exit code %d, %q, %q", tt.args, code, stdout.String(), stderr.String())
		}
	}
}
