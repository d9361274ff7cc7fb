//go:build unix

package launch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// checkTime limits the time for checking all hosts.
const checkTime = 20 * time.Second

// checkScript is the shell script that checks a host. Its arguments are the value for PATH, followed by pairs of a
// folder and a program.
const checkScript = `PATH=$1; shift
while [ $# -gt 0 ]; do
  cd -- "$1" 2>/dev/null || { echo "has no folder \"$1\""; exit 9; }
  command -v -- "$2" >/dev/null || { echo "has no program \"$2\" (working directory $1)"; exit 9; }
  shift 2
done`

// CheckHosts logs in to hosts by ssh, as hydra does, and searches there for the folders and programs of a job. Without
// it, hydra would wait forever for a host that does not answer. It skips this host, and checks nothing if hydra uses
// another program than ssh because of HYDRA_LAUNCHER or a scheduler.
func (j *Job) CheckHosts(ctx context.Context, hosts []string) error {
	if !bySSH(os.Getenv) {
		return nil
	}
	command, err := j.checkCommand()
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, checkTime)
	defer stop()
	errs := make([]error, len(hosts))
	var all sync.WaitGroup
	for i, host := range hosts {
		all.Go(func() { errs[i] = checkHost(ctx, hostOf(host), command) })
	}
	all.Wait()
	return firstError(errs)
}

// bySSH reports whether hydra logs in to hosts by ssh.
func bySSH(getenv func(string) string) bool {
	if launcher := getenv("HYDRA_LAUNCHER"); launcher != "" {
		return launcher == "ssh"
	}
	for _, scheduler := range []string{"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PE_HOSTFILE"} {
		if getenv(scheduler) != "" {
			return false
		}
	}
	return true
}

// firstError returns the first error. Its text also states the number of further errors.
func firstError(errs []error) (first error) {
	more := 0
	for _, err := range errs {
		switch {
		case err != nil && first == nil:
			first = err
		case err != nil:
			more++
		}
	}
	if more > 0 {
		return fmt.Errorf("%w (errors of %d more hosts)", first, more)
	}
	return first
}

// checkCommand returns the shell command that runs the check on a host.
func (j *Job) checkCommand() (string, error) {
	args := []string{"sh", "-c", checkScript, "sh", os.Getenv("PATH")}
	for _, p := range j.Programs {
		dir, err := filepath.Abs(p.Dir)
		if err != nil {
			return "", err
		}
		args = append(args, dir, p.Args[0])
	}
	for i, arg := range args {
		args[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
	}
	return strings.Join(args, " "), nil
}

// checkHost runs the check on a host by ssh, as Hydra would start ranks there. Exit code 9 means that the check itself
// has found something missing.
func checkHost(ctx context.Context, host, command string) error {
	if isLocal(ctx, host) {
		return nil
	}
	ssh := cmp.Or(os.Getenv("HYDRA_LAUNCHER_EXEC"), "ssh")
	args := append(strings.Fields(os.Getenv("HYDRA_LAUNCH_EXTRA_ARGS")), "-x", "-o", "BatchMode=yes", "-o",
		"ConnectTimeout=5", host, command)
	cmd := exec.CommandContext(ctx, ssh, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("host %q has not answered %s for %v", host, ssh, checkTime)
	case !ended:
		return fmt.Errorf("host %q: %w: it is needed for other hosts", host, err)
	case exit.ExitCode() == 9:
		return fmt.Errorf("host %q %s: all hosts need the same files at the same paths", host, lastLine(&out))
	}
	return fmt.Errorf("host %q cannot be used: %s: %s %s has to work without a question", host,
		cmp.Or(lastLine(&errs), exit.Error()), ssh, host)
}

func lastLine(b *bytes.Buffer) string {
	text := strings.TrimSpace(b.String())
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

// hostOf returns the host in an entry of a host list, without the number of ranks that may follow it after a colon.
func hostOf(text string) string {
	host, _, _ := strings.Cut(text, ":")
	return host
}

// isLocal reports whether a name or an address refers to this host. It follows the rules by which hydra decides this.
func isLocal(ctx context.Context, host string) bool {
	if name, err := os.Hostname(); err == nil && host == name || host == "localhost" {
		return true
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return false // ssh may have an alias
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range own {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Unmap() == found[0].Unmap() {
			return true
		}
	}
	return false
}

// Replace replaces this process with a program, with additional environment variables. It returns only on failure.
func Replace(args, env []string) error {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", path, syscall.Exec(path, args, append(os.Environ(), env...)))
}
