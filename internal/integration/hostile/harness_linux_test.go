package hostile

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/netns"
	"github.com/zrlmpi/zrlmpid/internal/testkit/asuser"
	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// limit limits the run time of a command. It exceeds the time for which any client waits for a daemon that does not
// answer.
const limit = 2 * time.Minute

// attack is an attack by another user. run makes the attack and checks that it fails.
type attack struct {
	name string
	run  func(h *host)
	// once is set if the kernel's protections make no difference.
	once bool
}

// attacks lists all attacks, which each file appends to.
var attacks []attack

// protections are the kernel settings for links and files in sticky directories.
var protections = []string{"protected_symlinks", "protected_hardlinks", "protected_regular"}

// envInside is set in the process that runs inside the network namespace.
const envInside = "ZRLMPI_TEST_HOSTILE_INSIDE"

// TestAttacks runs every attack without and with the kernel's protections, in a process with its own network and mount
// namespaces. Addresses, ports, abstract socket names and root's jobs are therefore private to the test.
func TestAttacks(t *testing.T) {
	needs.Root(t, "attacks of other users", "can be another user")
	if os.Getenv(envInside) == "" {
		inside(t)
		return
	}
	emptyRun(t)
	for name, value := range map[string]string{"unprotected": "0", "protected": "1"} {
		t.Run(name, func(t *testing.T) {
			protect(t, value)
			for _, a := range attacks {
				if a.once && value != "0" {
					continue
				}
				t.Run(a.name, func(t *testing.T) { a.run(newHost(t)) })
			}
		})
	}
}

// inside reruns the test in a process in a network namespace.
func inside(t *testing.T) {
	needs.Program(t, "attacks of other users", "ip", "iproute2")
	if dir, err := binaries(); err != nil {
		t.Fatal(err)
	} else {
		t.Setenv("HOSTILE_BIN", dir)
	}
	n, err := netns.New()
	if err == nil {
		defer n.Close()
		err = n.RunIP("link set lo up")
	}
	if err != nil {
		needs.Missing(t, "attacks of other users", err.Error())
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run="+flag.Lookup("test.run").Value.String(),
		"-test.timeout=8m")
	cmd.Env = append(os.Environ(), envInside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	var out []byte
	n.Do(func() { out, err = cmd.CombinedOutput() })
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// emptyRun mounts an empty /run, which hides the jobs of root on this host.
func emptyRun(t *testing.T) {
	t.Helper()
	must(t, syscall.Mount("tmpfs", "/run", "tmpfs", 0, "mode=755"))
}

// protect sets the kernel's protections until the test ends.
func protect(t *testing.T, value string) {
	for _, name := range protections {
		path := "/proc/sys/fs/" + name
		before, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, []byte(value), 0)
		}
		if err != nil {
			needs.Missing(t, "attacks with fs."+name+"="+value, err.Error())
		}
		t.Cleanup(func() {
			if err := os.WriteFile(path, before, 0); err != nil {
				t.Error(err)
			}
		})
	}
}

// built is the directory of the binaries built by the test, or empty.
var built string

// binaries returns the directory of zrlmpid and zrlctl, which every user can run.
var binaries = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("HOSTILE_BIN"); dir != "" {
		return dir, nil
	}
	dir, err := os.MkdirTemp("", "zrlmpid-hostile")
	if err != nil {
		return "", err
	}
	built = dir
	out, err := exec.Command("go", "build", "-o", dir+"/", "../../../cmd/zrlmpid",
		"../../../cmd/zrlctl").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return dir, os.Chmod(dir, 0o755)
})

// TestMain runs the program of a rank if the test binary is started as one. Otherwise it runs the tests and removes the
// binaries.
func TestMain(m *testing.M) {
	if os.Getenv(envProgram) != "" {
		os.Exit(program(os.Stderr))
	}
	code := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(code)
}

// host is a host with two users: root, the victim, and the attacker.
type host struct {
	*testing.T
	bin string
	// open is a directory with the sticky bit to which every user can write, like /tmp. wide is such a directory
	// without the sticky bit.
	open, wide string
	// private is a directory of root.
	private string
}

func newHost(t *testing.T) *host {
	bin, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "h") // short enough for socket paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	h := &host{T: t, bin: bin, open: dir + "/open", wide: dir + "/wide", private: dir + "/private"}
	must(t, os.Chmod(dir, 0o755), os.Mkdir(h.open, 0o700), os.Mkdir(h.wide, 0o700), os.Mkdir(h.private, 0o700),
		os.Chmod(h.open, 0o777|os.ModeSticky), os.Chmod(h.wide, 0o777))
	return h
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// attacker calls f as the other user.
func (h *host) attacker(f func() error) {
	h.Helper()
	var err error
	asuser.Do(h.T, asuser.Other, func() { err = f() })
	must(h.T, err)
}

// command returns a command of root with a clean environment.
func (h *host) command(ctx context.Context, program string, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(h.bin, program), args...)
	cmd.Dir = h.private
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + h.private, "XDG_RUNTIME_DIR=" + h.private,
		"STATE_DIRECTORY=" + filepath.Join(h.private, "state"), "ZRLMPID_HTTP_LISTEN="}
	return cmd
}

// zrlctl runs a command of root, and returns its exit code and its output.
func (h *host) zrlctl(args ...string) (code int, output string) {
	h.Helper()
	return h.run(func(ctx context.Context) *exec.Cmd { return h.command(ctx, "zrlctl", args) })
}

// run runs a command, which must exit within the limit.
func (h *host) run(command func(context.Context) *exec.Cmd) (code int, output string) {
	h.Helper()
	ctx, stop := context.WithTimeout(h.Context(), limit)
	defer stop()
	cmd := command(ctx)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return -1, "it did not end in " + limit.String() + ": " + string(out)
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), string(out)
	}
	must(h.T, err)
	return 0, string(out)
}

// config writes a configuration with a host and an FPGA that does not run, and returns its path. more is additional
// YAML.
func (h *host) config(more string) string {
	path := filepath.Join(h.private, "z.yaml")
	text := fmt.Sprintf("%s\ndefaults: {profile: cloudfpga, transport: udp, deadlines: {clear: 100ms}}\nranks:\n"+
		"- {rank: 0, address: 127.66.1.1, run: host}\n- {rank: 1, address: 127.66.1.2, peer: fpga}\n", more)
	must(h.T, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// daemon is a zrlmpid of root.
type daemon struct {
	h      *host
	cmd    *exec.Cmd
	log    *lines
	exited chan struct{}
}

// start starts a daemon and waits until it is ready or exits.
func (h *host) start(args ...string) *daemon {
	h.Helper()
	d := &daemon{h: h, cmd: h.command(context.Background(), "zrlmpid", args), log: &lines{},
		exited: make(chan struct{})}
	d.cmd.Stdout, d.cmd.Stderr = d.log, d.log
	must(h.T, d.cmd.Start())
	go func() {
		_ = d.cmd.Wait()
		close(d.exited)
	}()
	h.Cleanup(d.stop)
	d.await("ready rank")
	return d
}

func (d *daemon) ended() bool {
	select {
	case <-d.exited:
		return true
	default:
		return false
	}
}

// await waits until the log contains a text or the daemon exits.
func (d *daemon) await(text string) {
	d.h.Helper()
	late := time.After(limit)
	for {
		printed, written := d.log.state()
		if d.ended() || strings.Contains(printed, text) {
			return
		}
		select {
		case <-written:
		case <-d.exited:
		case <-late:
			d.h.Fatalf("the log has no %q:\n%s", text, printed)
		}
	}
}

func (d *daemon) stop() {
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	<-d.exited
}

// lines collects the output of a process.
type lines struct {
	mu      sync.Mutex
	b       bytes.Buffer
	written chan struct{} // closed by the next Write; nil if no caller is waiting
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.written != nil {
		close(l.written)
		l.written = nil
	}
	return l.b.Write(b)
}

// state returns the output so far, and a channel that is closed when more is written.
func (l *lines) state() (printed string, written <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.written == nil {
		l.written = make(chan struct{})
	}
	return l.b.String(), l.written
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// secret is the content of a file of root.
const secret = "root's own\n"

// precious creates a file of root, and returns a function that checks that it is unchanged.
func (h *host) precious(path string) (check func()) {
	h.Helper()
	must(h.T, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(secret), 0o600))
	return func() {
		h.Helper()
		if data, err := os.ReadFile(path); err != nil || string(data) != secret {
			h.Errorf("%s was changed: %d bytes, %v", path, len(data), err)
		}
	}
}

// belongsToRoot checks that the other user neither owns nor can read any file below a directory.
func (h *host) belongsToRoot(dir string) {
	h.Helper()
	must(h.T, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() && (info.Sys().(*syscall.Stat_t).Uid != 0 || info.Mode()&0o077 != 0) {
			h.Errorf("%s: %v of user %d", path, info.Mode(), info.Sys().(*syscall.Stat_t).Uid)
		}
		return err
	}))
}

// drain reads a connection until the end and returns the number of bytes.
func drain(r io.Reader) int64 {
	n, _ := io.Copy(io.Discard, r)
	return n
}
