package hostile

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/job"
)

func init() {
	attacks = append(attacks,
		attack{name: "another user listens, and answers nothing useful",
			run: func(h *host) { h.squatted(answerEmpty) }},
		attack{name: "another user listens, and answers as a daemon", run: func(h *host) { h.squatted(answerStatus) }},
		attack{name: "another user listens, and is silent", run: func(h *host) { h.squatted(nil) }},
		attack{name: "the name of a stopped daemon is taken", run: nameTaken},
		attack{name: "the daemon is stopped", run: stopped, once: true},
	)
}

// letter is a message of root, which no other user may read.
const letter = "letter of root"

// commands returns all zrlctl commands that use a daemon's control socket, by name.
func (h *host) commands(socket string) map[string][]string {
	file := h.private + "/letter"
	must(h.T, os.WriteFile(file, []byte(strings.Repeat(letter+"..", 1<<20)), 0o600)) // more than a socket buffers
	at := func(command ...string) []string {
		return append(append([]string{}, command[:1]...), append([]string{"--socket", socket}, command[1:]...)...)
	}
	return map[string][]string{
		"status":  at("status"),
		"ranks":   at("ranks"),
		"why":     at("why"),
		"daemons": at("why", "--daemons", socket),
		"top":     at("top", "--count", "1"),
		"ping":    at("ping", "1", "--timeout", "1s"),
		"all":     at("ping", "all", "--timeout", "1s"),
		"send":    at("send", "1", "--file", file, "--timeout", "1s"),
		"recv":    at("recv", "1", "--timeout", "1s"),
		"reset":   at("reset", "1"),
		"reload":  at("reload"),
		"capture": at("capture", "-o", h.private+"/c.pcapng"),
		"follow":  at("capture", "--follow", "-o", h.private+"/f.pcapng"),
		"trace":   at("trace", "--for", "1s", "-o", h.private+"/t.json"),
		"doctor":  at("doctor"),
		"bundle":  at("bundle", "-o", h.private+"/b.tar.gz"),
	}
}

// squatter is a process of the other user that listens at a path.
type squatter struct {
	connections, received atomic.Int64
	listener              net.Listener
}

// squat listens at a path as the other user. If answer is nil, it accepts connections but never reads from them.
func (h *host) squat(path string, answer http.HandlerFunc) *squatter {
	h.Helper()
	s := &squatter{}
	h.attacker(func() (err error) {
		s.listener, err = net.Listen("unix", path)
		if err == nil {
			err = os.Chmod(path, 0o777)
		}
		return err
	})
	h.Cleanup(func() { s.listener.Close() })
	if answer == nil {
		return s // connections are accepted by the kernel
	}
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.received.Add(drain(r.Body))
			answer(w, r)
		}),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateActive { // a byte was received
				s.connections.Add(1)
			}
		},
	}
	go server.Serve(s.listener)
	h.Cleanup(func() { server.Close() })
	return s
}

// answerEmpty answers every request with {}.
func answerEmpty(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Zrlmpid-Profile", "cloudfpga")
	w.Header().Set("Zrlmpid-Message", "{}")
	fmt.Fprint(w, "{}")
}

// answerStatus answers like a daemon of two ranks.
func answerStatus(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Zrlmpid-Version", "v1")
	w.Header().Set("Zrlmpid-Profile", "cloudfpga")
	w.Header().Set("Zrlmpid-Message", `{"src": 1, "dst": 0, "words": 0}`)
	switch r.URL.Path {
	case "/v1/status":
		fmt.Fprint(w, `{"version": "v1", "pid": 1, "config": "/etc/zrlmpid.yaml", `+
			`"cluster": [{"rank": 0, "role": "host"}, {"rank": 1}], "ranks": [{"rank": 0, "role": "host"}]}`)
	case "/v1/send":
		fmt.Fprintf(w, `{"src": 0, "dst": 1, "words": %d, "elapsed_us": 1}`, (len(letter)+2)<<18)
	case "/v1/ping":
		fmt.Fprint(w, `{"src": 0, "dst": 1, "words": 1, "verified": true, "round_trip_us": 1}`)
	case "/v1/recv":
	default:
		fmt.Fprint(w, `{"config": "/etc/zrlmpid.yaml", "changes": []}`)
	}
}

// all concurrently runs all commands on one socket, and an attaching program on the other. It returns an error for each
// that succeeded or did not exit in time, and nil for the others.
func (h *host) all(control, attach string) map[string]error {
	h.Helper()
	results := map[string]error{}
	var mu sync.Mutex
	var running sync.WaitGroup
	run := func(name string, f func() (int, string)) {
		running.Go(func() {
			begun := time.Now()
			code, out := f()
			h.Logf("%s: exit code %d after %v: %.300s", name, code, time.Since(begun).Round(time.Millisecond), out)
			mu.Lock()
			defer mu.Unlock()
			results[name] = nil
			if code <= 0 {
				results[name] = fmt.Errorf("exit code %d: %.300s", code, out)
			}
		})
	}
	for name, args := range h.commands(control) {
		run(name, func() (int, string) { return h.zrlctl(args...) })
	}
	run("program", func() (int, string) { return h.program(job.EnvSocket + "=" + attach) })
	running.Wait()
	return results
}

// squatted runs all commands and an attaching program on sockets of the other user, in each kind of directory.
func (h *host) squatted(answer http.HandlerFunc) {
	for _, dir := range []string{h.open, h.wide} {
		control, attached := h.squat(dir+"/z.sock", answer), h.squat(dir+"/z-attach.sock", answer)
		for name, err := range h.all(dir+"/z.sock", dir+"/z-attach.sock") {
			if err != nil {
				h.Errorf("%s at %s believes the other user: %v", name, dir, err)
			}
		}
		for name, s := range map[string]*squatter{"control": control, "attach": attached} {
			if n, bytes := s.connections.Load(), s.received.Load(); n > 0 {
				h.Errorf("the other user got %d requests at the %s socket, and %d bytes of messages", n, name, bytes)
			}
		}
	}
}

// nameTaken stops a daemon in /tmp, and lets the other user listen at its path before the daemon restarts.
func nameTaken(h *host) {
	path := h.open + "/z.sock"
	d := h.start("--config", h.config(""), "--control", path)
	if d.ended() {
		h.Fatalf("%s", d.log)
	}
	d.stop()
	s := h.squat(path, answerStatus)
	if code, out := h.zrlctl("--socket", path, "status"); code == 0 || s.connections.Load() > 0 {
		h.Errorf("exit code %d, %d requests: %s", code, s.connections.Load(), out)
	}
	again := h.start("--config", h.config(""), "--control", path)
	if !again.ended() || !strings.Contains(again.log.String(), "a process of user 54321 listens there") {
		h.Errorf("the daemon has started, or does not say who has its name:\n%s", again.log)
	}
}

// stopped stops a daemon of root as a debugger does. This is not an attack, but clients must not wait for it forever
// either.
func stopped(h *host) {
	d := h.start("--config", h.config(""), "--control", h.private+"/z.sock")
	must(h.T, d.cmd.Process.Signal(syscall.SIGSTOP))
	defer d.cmd.Process.Signal(syscall.SIGCONT)
	for name, err := range h.all(h.private+"/z.sock", h.private+"/z-attach.sock") {
		if err != nil {
			h.Errorf("%s at a daemon that is stopped: %v", name, err)
		}
	}
}

// envProgram makes the test binary run a rank's program.
const envProgram = "ZRLMPI_TEST_HOSTILE_PROGRAM"

// program runs a program of root as a rank that sends a message, with additional environment variables.
func (h *host) program(more ...string) (code int, output string) {
	h.Helper()
	return h.run(func(ctx context.Context) *exec.Cmd {
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Dir = h.private
		cmd.Env = append([]string{"HOME=" + h.private, envProgram + "=1"}, more...)
		return cmd
	})
}

// program is the main function of a rank's program.
func program(out io.Writer) int {
	ctx := context.Background()
	world, err := job.Init(ctx)
	if err == nil {
		err = mpi.Send(ctx, world, []int32{1, 2, 3}, 1, 0)
	}
	if err != nil {
		fmt.Fprintln(out, err)
		return 1
	}
	return 0
}
