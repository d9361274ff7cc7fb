package hostile

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/testkit/asuser"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/job"
)

func init() {
	if os.Getenv(envRank) != "" {
		os.Exit(rank(os.Stderr))
	}
	attacks = append(attacks,
		attack{name: "places of sockets are taken", run: placesTaken},
		attack{name: "places of sockets are links", run: placesLinked},
		attack{name: "abstract names are taken", run: abstractTaken, once: true},
		attack{name: "a job answers that all is well", run: func(h *host) { h.foreignJob([]byte(wellReport)) },
			once: true},
		attack{name: "a job answers without end", run: func(h *host) { h.foreignJob(nil) }, once: true},
		attack{name: "a job answers with many objects", run: manyObjects, once: true},
		attack{name: "a job answers with as many objects as are read", run: mostObjects, once: true},
		attack{name: "a job answers with arrays in arrays",
			run: func(h *host) { h.foreignJob(bytes.Repeat([]byte("["), 15<<20)) }, once: true},
		attack{name: "there are 3,000 jobs", run: manyJobs, once: true},
	)
}

// envRank makes the test binary run a rank of a job.
const envRank = "ZRLMPI_TEST_HOSTILE_RANK"

// rank sends its number to one neighbour and receives the number of the other one.
func rank(out io.Writer) int {
	ctx := context.Background()
	world, err := job.Init(ctx)
	if err == nil {
		got := []int32{-1}
		n, me := world.Size(), world.Rank()
		if _, err = mpi.Sendrecv(ctx, world, []int32{int32(me)}, (me+1)%n, 0, got, (me+n-1)%n, 0); err == nil &&
			got[0] != int32((me+n-1)%n) {
			err = fmt.Errorf("rank %d has got %d", me, got[0])
		}
		if err == nil {
			err = abstractNames()
		}
		if err == nil {
			err = world.Finalize(ctx)
		}
	}
	if err != nil {
		fmt.Fprintln(out, err)
		return 1
	}
	return 0
}

// abstractNames returns an error if this process has a socket with an abstract name, which every user could take.
func abstractNames() error {
	own := map[string]bool{}
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		return err
	}
	for _, link := range links {
		target, _ := os.Readlink(link) // fails for descriptors closed meanwhile
		own[target] = true
	}
	table, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return err
	}
	sockets := 0
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) < 7 || !own["socket:["+fields[6]+"]"] {
			continue
		}
		if sockets++; len(fields) > 7 && strings.HasPrefix(fields[7], "@") {
			return fmt.Errorf("a rank has the socket %s", fields[7])
		}
	}
	if sockets == 0 {
		return errors.New("the sockets of the rank are not found")
	}
	return nil
}

// user is the victim in tests in which the directories of root cannot be taken.
const user = asuser.Other + 1

// asUser runs zrlctl as the victim, without a session or a home directory.
func (h *host) asUser(args ...string) (code int, output string) {
	h.Helper()
	return h.run(func(ctx context.Context) *exec.Cmd {
		cmd := h.command(ctx, "zrlctl", args)
		cmd.Dir = "/"
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), envRank + "=1"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
		return cmd
	})
}

// ranks returns the path of a copy of the test binary that every user can run.
func (h *host) ranks() string {
	h.Helper()
	data, err := os.ReadFile(os.Args[0])
	path := filepath.Join(filepath.Dir(h.open), "rank")
	must(h.T, err, os.WriteFile(path, data, 0o755), os.Chmod(path, 0o755))
	return path
}

// places returns the directories for the sockets of a user without a session or a home directory.
func places(uid int) []string {
	name := fmt.Sprintf("zrlmpi-%d", uid)
	return []string{"/tmp/" + name, "/dev/shm/" + name}
}

// placesTaken lets the other user create the directories for the victim's sockets, and a job in them.
func placesTaken(h *host) {
	h.takePlaces(func(place string) error { return os.MkdirAll(place+"/jobs", 0o777) })
}

// placesLinked lets the other user create links to other directories in place of the directories for the victim's
// sockets.
func placesLinked(h *host) {
	h.takePlaces(func(place string) error {
		target := filepath.Join(h.open, filepath.Base(filepath.Dir(place)))
		if err := os.MkdirAll(target+"/jobs", 0o777); err != nil {
			return err
		}
		return os.Symlink(target, place)
	})
}

func (h *host) takePlaces(take func(place string) error) {
	program := h.ranks()
	for _, place := range places(user) {
		h.Cleanup(func() { os.RemoveAll(place) })
		h.attacker(func() error { return take(place) })
		h.serveJob(place, "prod", answering([]byte(wellReport)))
	}
	code, out := h.asUser("run", "-n", "4", program)
	if code != 0 || !strings.Contains(out, "warning: tools do not find this job: ") ||
		!strings.Contains(out, places(user)[0]) {
		h.Errorf("the job: exit code %d, %s", code, out)
	}
	for _, command := range [][]string{{"status"}, {"why"}, {"status", "--job", "prod"}, {"why", "--job", "prod"},
		{"metrics"}} {
		if code, out := h.asUser(command...); code == 0 || strings.Contains(out, "10.66.") ||
			!strings.Contains(out, "jobs may run that are not found: "+places(user)[0]) {
			h.Errorf("%q: exit code %d, %s", command, code, out)
		}
	}
	for _, dir := range []string{"/tmp", "/dev/shm"} { // no temporary files are left
		list, err := filepath.Glob(dir + "/zrlctl_*")
		for _, path := range list {
			if info, err := os.Stat(path); err == nil && info.Sys().(*syscall.Stat_t).Uid == user {
				h.Errorf("%s is left", path)
			}
		}
		must(h.T, err)
	}
}

// abstractTaken binds sockets of the other user to abstract names that earlier versions used. Jobs must no longer use
// such names.
func abstractTaken(h *host) {
	h.attacker(func() error {
		for _, name := range []string{"@zrlmpi/0/prod/0", "@zrlmpid-shm/127.0.0.1:2718"} {
			l, err := net.Listen("unix", name)
			if err != nil {
				return err
			}
			h.Cleanup(func() { l.Close() })
		}
		return nil
	})
	if code, out := h.zrlctl("status"); code == 0 || strings.Contains(out, "prod") {
		h.Errorf("exit code %d, %s", code, out)
	}
	program := h.ranks()
	code, out := h.run(func(ctx context.Context) *exec.Cmd {
		cmd := h.command(ctx, "zrlctl", []string{"run", "-n", "2", program})
		cmd.Env = append(cmd.Env, envRank+"=1")
		return cmd
	})
	if code != 0 {
		h.Errorf("exit code %d, %s", code, out)
	}
}

// wellReport is the answer of a rank that claims to be another process. It contains terminal escape sequences.
const wellReport = `{"pid": 1, "started": "2020-01-01T00:00:00Z", "rank": 0, "role": "host", ` +
	`"address": "10.66.0.1:2718\u001b[2J\u001b]0;x\u0007", "transports": ["udp\nno problems found"], ` +
	`"cluster": [{"address": "10.66.0.1:2718", "kind": "software"}], "engine": {"Rank": 0}}`

// answering returns a server that sends an answer and closes the connection, or one that sends data endlessly if answer
// is nil.
func answering(answer []byte) func(net.Conn) {
	return func(conn net.Conn) {
		defer conn.Close()
		if _, err := conn.Read(make([]byte, 100)); err != nil {
			return
		}
		if answer != nil {
			_, _ = conn.Write(answer)
			return
		}
		for more := bytes.Repeat([]byte(`{"a": [`), 1<<16); ; {
			if _, err := conn.Write(more); err != nil {
				return
			}
		}
	}
}

// serveJob serves rank 0 of a job of the other user, in one of that user's directories.
func (h *host) serveJob(place, name string, serve func(net.Conn)) {
	h.Helper()
	var l net.Listener
	h.attacker(func() (err error) {
		dir := filepath.Join(place, "jobs", name+"."+rand.Text())
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if l, err = net.Listen("unix", filepath.Join(dir, "0")); err == nil {
			err = os.Chmod(filepath.Join(dir, "0"), 0o777)
		}
		return err
	})
	h.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
}

const (
	// maxMemory is the maximum memory of zrlctl in KiB, and maxTime its maximum run time on a busy host.
	maxMemory = 200 << 10
	maxTime   = 20 * time.Second
)

// bounded runs zrlctl as root and checks its memory and run time.
func (h *host) bounded(args ...string) (code int, output string) {
	h.Helper()
	var cmd *exec.Cmd
	begin := time.Now()
	code, output = h.run(func(ctx context.Context) *exec.Cmd {
		cmd = h.command(ctx, "zrlctl", args)
		return cmd
	})
	h.Logf("%q: %d KiB, %v", args, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss,
		time.Since(begin).Round(time.Millisecond))
	if used := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss; used > maxMemory || time.Since(begin) > maxTime {
		h.Errorf("%q took %d KiB and %v", args, used, time.Since(begin))
	}
	return code, output
}

// foreignJob lets root ask a job of the other user, which sends the given answer.
func (h *host) foreignJob(answer []byte) {
	place := places(asuser.Other)[0]
	h.Cleanup(func() { os.RemoveAll(place) })
	h.serveJob(place, "prod", answering(answer))
	named := fmt.Sprintf("prod@%d", asuser.Other)
	for _, command := range [][]string{{"status"}, {"why"}, {"ranks"}, {"status", "--job", "prod"}, {"metrics"},
		{"status", "--job", "prod@0"}} {
		if code, out := h.bounded(command...); strings.Contains(out, "10.66.") || code == 0 && out != "" {
			h.Errorf("%q shows the job of another user: exit code %d, %s", command, code, out)
		}
	}
	for _, command := range []string{"status", "why", "top"} {
		args := []string{command, "--job", named}
		if command == "top" {
			args = append(args, "--count", "1")
		}
		code, out := h.bounded(args...)
		belongs := fmt.Sprintf("job %s belongs to user %d, whose processes are not trusted", named, asuser.Other)
		if !strings.Contains(out, belongs) || strings.ContainsAny(out, "\x1b\a") ||
			strings.Contains(out, "\nno problems") || strings.Contains(out, "process 1 ") ||
			strings.Contains(out, "no rank is waiting") || strings.Contains(out, "No rank is waiting") {
			h.Errorf("%s: exit code %d\n%q", command, code, out)
		}
		if command == "why" && code != 3 {
			h.Errorf("%s: exit code %d\n%s", command, code, out)
		}
	}
}

// manyObjects sends an answer in which every three bytes become a structure of hundreds of bytes.
func manyObjects(h *host) {
	h.foreignJob([]byte(`{"cluster": [{}], "engine": {"peers": [` + strings.Repeat(`{},`, 1<<20) + `{}]}}`))
}

// mostObjects sends an answer with the maximum number of objects that ranks may send.
func mostObjects(h *host) {
	const n = 30_000
	object := `{"kind":"` + strings.Repeat("a", 50) + `"},`
	h.foreignJob([]byte(`{"cluster": [` + strings.Repeat(object, n) + `{}], "engine": {"peers": [` +
		strings.Repeat(object, n) + `{}]}}`))
}

// manyJobs starts 3,000 jobs of the other user, one of which root names.
func manyJobs(h *host) {
	const n = 3000
	place := places(asuser.Other)[0]
	h.Cleanup(func() { os.RemoveAll(place) })
	for i := range n {
		h.serveJob(place, fmt.Sprintf("job_%d", i), answering([]byte(wellReport)))
	}
	if code, out := h.bounded("status"); code == 0 || strings.Contains(out, "job_") {
		h.Errorf("exit code %d, %s", code, out)
	}
	if code, out := h.bounded("status", "--job", fmt.Sprintf("job_7@%d", asuser.Other)); code != 0 ||
		!strings.Contains(out, "belongs to user") || strings.Contains(out, "job_70") {
		h.Errorf("exit code %d, %s", code, out)
	}
}
