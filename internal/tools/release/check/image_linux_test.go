package check

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// instruction is an instruction in a Dockerfile with its arguments.
type instruction struct{ name, rest string }

// readDockerfile reads the instructions of a Dockerfile. It supports only the syntax used in our Dockerfile. Package
// manifests parses the Dockerfile in the way Docker does.
func readDockerfile(t *testing.T) []instruction {
	t.Helper()
	text, err := os.ReadFile(from("deploy/docker/Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	var all []instruction
	var before string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if head, more := strings.CutSuffix(line, `\`); more {
			before += head
			continue
		}
		name, rest, _ := strings.Cut(before+line, " ")
		all = append(all, instruction{name, rest})
		before = ""
	}
	return all
}

// image is a built image: its root folder, and the settings with which it starts.
type image struct {
	root, out         string
	who               account
	env               []string
	entry, cmd, check []string
}

// buildImage executes the Dockerfile. The working directory of the build stage is the repository, and the output is
// written to temporary folders.
func buildImage(t *testing.T) *image {
	t.Helper()
	m := &image{root: t.TempDir(), out: t.TempDir()}
	for dir := m.root; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	args, stage := []string{}, 0
	for _, i := range readDockerfile(t) {
		switch {
		case i.name == "FROM":
			stage++
			if stage == 2 && i.rest != "scratch" {
				t.Fatalf("the image begins with %s, and not with nothing", i.rest)
			}
		case i.name == "ARG":
			args = append(args, i.rest)
		case stage == 1 && i.name == "RUN":
			m.build(t, args, i.rest)
		case stage == 2:
			m.take(t, i)
		}
	}
	return m
}

// build runs a command in the build stage.
func (m *image) build(t *testing.T, args []string, command string) {
	t.Helper()
	for _, folder := range []string{"/out/", "/run-out/", "/state-out/"} {
		command = strings.ReplaceAll(command, " "+folder, " "+m.out+folder)
	}
	cmd := exec.Command("sh", "-euc", command)
	cmd.Dir, cmd.Env = repository, append(os.Environ(), args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("RUN %s: %v\n%s", command, err, out)
	}
}

// take executes an instruction in the final stage.
func (m *image) take(t *testing.T, i instruction) {
	t.Helper()
	words := strings.Fields(i.rest)
	var err error
	switch i.name {
	case "COPY":
		into := filepath.Join(m.root, words[len(words)-1])
		source := m.out + words[len(words)-2]
		if err = os.MkdirAll(into, 0o755); err == nil {
			err = exec.Command("cp", "-r", "--preserve=mode", source+".", into).Run()
		}
		if owner, ok := strings.CutPrefix(words[1], "--chown="); ok && err == nil {
			err = exec.Command("chown", "-R", owner, into).Run()
		}
	case "ENV":
		m.env = append(m.env, i.rest)
	case "USER":
		uid, gid, _ := strings.Cut(i.rest, ":")
		m.who = account{uid: number(t, uid), gid: number(t, gid)}
	case "ENTRYPOINT":
		err = json.Unmarshal([]byte(i.rest), &m.entry)
	case "CMD":
		err = json.Unmarshal([]byte(i.rest), &m.cmd)
	case "HEALTHCHECK":
		_, list, _ := strings.Cut(i.rest, " CMD ")
		err = json.Unmarshal([]byte(list), &m.check)
	case "LABEL", "EXPOSE", "STOPSIGNAL":
	default:
		err = fmt.Errorf("the test does not know it")
	}
	if err != nil {
		t.Fatalf("%s %s: %v", i.name, i.rest, err)
	}
}

func number(t *testing.T, word string) uint32 {
	t.Helper()
	n, err := strconv.ParseUint(word, 10, 32)
	if err != nil || n == 0 {
		t.Fatalf("%q is not the number of a user or group other than root", word)
	}
	return uint32(n)
}

// TestImage builds the image and runs it in a folder that contains nothing else: no library, no shell and no /proc.
func TestImage(t *testing.T) {
	needsRoot(t, "the image")
	m := buildImage(t)
	s := start(t, newNetwork(t), m.root, m.who, "", m.env, append(m.entry, m.cmd...)...)
	s.run(m.who, m.check...)
	s.works(m.who)
	s.stops()
	if out, err := s.try(m.who, m.check...); err == nil {
		t.Errorf("the health check of an exited container is\n%s", out)
	}
	m.configure(t, "deploy/packaging/zrlmpid.yaml")
	s = start(t, newNetwork(t), m.root, m.who, "", m.env, append(m.entry, m.cmd...)...)
	s.records(m.who, m.env)
	s.stops()
}

// configure installs a configuration from the repository, and adds a rank 4 that does not run.
func (m *image) configure(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile(from(name))
	if err == nil {
		text = append(text, "  - {rank: 4, address: 127.0.0.5, peer: cpu}\n"...)
		err = os.WriteFile(filepath.Join(m.root, "etc/zrlmpid/zrlmpid.yaml"), text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// records checks that a failure is recorded, and that the status mentions the record.
func (s *service) records(who account, env []string) {
	s.t.Helper()
	out, err := s.tryWith(who, env, "/usr/bin/zrlctl", "send", "4", "--words", "1", "--timeout", "200ms")
	if err == nil {
		s.t.Errorf("a message was received:\n%s", out)
	}
	s.log.waitFor(s.t, "failure record written")
	out, err = s.tryWith(who, env, "/usr/bin/zrlctl", "status")
	if err != nil || !strings.Contains(out, "packets before it: zrlctl analyze /") {
		s.t.Errorf("the status names no record: %v\n%s", err, out)
	}
}

// TestImageOfAPod runs the image as deploy/kubernetes does: the root is read-only, and /dev/shm has 64 MiB.
func TestImageOfAPod(t *testing.T) {
	needsRoot(t, "the image in a pod")
	m := buildImage(t)
	m.configure(t, "deploy/kubernetes/overlays/standins/zrlmpid.yaml")
	shm := filepath.Join(m.root, "dev/shm")
	if err := os.MkdirAll(shm, 0o755); err != nil {
		t.Fatal(err)
	}
	mount := func(source, target, kind string, flags uintptr, options string) {
		t.Helper()
		if err := syscall.Mount(source, target, kind, flags, options); err != nil {
			t.Fatal(err)
		}
	}
	mount(m.root, m.root, "", syscall.MS_BIND, "")
	t.Cleanup(func() { _ = syscall.Unmount(m.root, syscall.MNT_DETACH) })
	mount("", m.root, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
	mount("tmpfs", shm, "tmpfs", 0, "size=64m,mode=1777")
	t.Cleanup(func() { _ = syscall.Unmount(shm, syscall.MNT_DETACH) })
	env := append(m.env, "ZRLMPID_CONTROL_SOCKET=/dev/shm/zrlmpid/control.sock",
		"STATE_DIRECTORY=/dev/shm/zrlmpid-state")
	s := start(t, newNetwork(t), m.root, m.who, "", env, append(m.entry, m.cmd...)...)
	s.records(m.who, env)
	s.stops()
}
