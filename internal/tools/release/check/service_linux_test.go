package check

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// account is the user and the groups under which a process runs.
type account struct {
	uid, gid uint32
	groups   []uint32
}

// service is a running zrlmpid that has its own root folder and network.
type service struct {
	t    *testing.T
	net  *network
	root string
	cmd  *exec.Cmd
	log  output
}

// output collects the output of a process. It can be read while the process is running.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// waitFor waits until the process has written the given text.
func (o *output) waitFor(t *testing.T, text string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(testTimeout); !strings.Contains(o.String(), text); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting for %q in\n%s", text, o.String())
		}
	}
}

// start starts the command in root under the account who. The environment is exactly env. It waits until zrlctl gets an
// answer. If calls is not empty, the command may make only these system calls.
func start(t *testing.T, net *network, root string, who account, calls string, env []string,
	command ...string) *service {
	t.Helper()
	s := &service{t: t, net: net, root: root}
	if calls == "" {
		s.cmd = s.command(context.Background(), who, command...)
	} else {
		s.cmd = exec.Command(os.Args[0], filteredArgs(root, who, calls, command)...)
	}
	s.cmd.Env = env
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	var err error
	net.do(func() { err = s.cmd.Start() })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.cmd.Process.Kill()
		s.cmd.Wait()
		if t.Failed() {
			t.Logf("the log:\n%s", s.log.String())
		}
	})
	if out, err := s.tryWith(who, env, "/usr/bin/zrlctl", "status", "--wait", "30s"); err != nil {
		t.Fatalf("status: %v\n%s\nthe log:\n%s", err, out, s.log.String())
	}
	return s
}

// command returns a command that runs in the root folder of the service.
func (s *service) command(ctx context.Context, who account, command ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Path, cmd.Err = command[0], nil // the path is valid only inside the root folder
	cmd.Dir = "/"
	cmd.Env = []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Chroot:     s.root,
		Credential: &syscall.Credential{Uid: who.uid, Gid: who.gid, Groups: who.groups},
	}
	return cmd
}

// try runs a command in the root folder and the network of the service.
func (s *service) try(who account, command ...string) (string, error) {
	return s.tryWith(who, []string{}, command...)
}

func (s *service) tryWith(who account, env []string, command ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	cmd := s.command(ctx, who, command...)
	cmd.Env = env
	var out []byte
	var err error
	s.net.do(func() { out, err = cmd.CombinedOutput() })
	return string(out), err
}

func (s *service) run(who account, command ...string) string {
	s.t.Helper()
	out, err := s.try(who, command...)
	if err != nil {
		s.t.Fatalf("%q: %v\n%s\nthe log:\n%s", command, err, out, s.log.String())
	}
	return out
}

// works checks that the service works for a user: ranks answer, and so do the pages that Prometheus and Kubernetes
// read.
func (s *service) works(who account) {
	s.t.Helper()
	var status struct {
		Ranks []struct{} `json:"ranks"`
	}
	if err := json.Unmarshal([]byte(s.run(who, "/usr/bin/zrlctl", "status", "--json")), &status); err != nil ||
		len(status.Ranks) != 4 {
		s.t.Errorf("status: %d ranks, %v", len(status.Ranks), err)
	}
	if out := s.run(who, "/usr/bin/zrlctl", "ping", "all", "--words", "1,347"); strings.Count(out, "1/1") != 6 {
		s.t.Errorf("ping:\n%s", out)
	}
	for path, want := range map[string]string{"/metrics": "zrlmpi_build_info", "/-/healthy": "", "/-/ready": ""} {
		ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
		code, body, err := s.net.get(ctx, "127.0.0.1:9627", path)
		cancel()
		if err != nil || code != 200 || !strings.Contains(body, want) {
			s.t.Errorf("%s: %d, %v\n%.500s", path, code, err, body)
		}
	}
}

// attaches builds an example program and attaches it to rank 0.
func (s *service) attaches(who account) (string, error) {
	s.t.Helper()
	program := filepath.Join(s.root, "pingpong")
	cmd := exec.Command("go", "build", "-trimpath", "-o", program, "./examples/pingpong")
	cmd.Dir, cmd.Env = repository, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v\n%s", err, out)
	}
	return s.tryWith(who, []string{"ZRLMPI_SOCKET=/run/zrlmpid/control-attach.sock"}, "/pingpong")
}

// stops stops the service in the way systemd and Docker do.
func (s *service) stops() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("after SIGTERM: %v", err)
	}
}
