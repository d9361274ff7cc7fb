package check

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const unitFile = "deploy/systemd/zrlmpid.service"

// unit maps the sections and keys of a unit to their values, in order.
type unit map[string]map[string][]string

func readUnit(t *testing.T) unit {
	t.Helper()
	text, err := os.ReadFile(from(unitFile))
	if err != nil {
		t.Fatal(err)
	}
	u, section := make(unit), ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		key, value, pair := strings.Cut(line, "=")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
			u[section] = make(map[string][]string)
		case pair && section != "":
			u[section][key] = append(u[section][key], value)
		default:
			t.Fatalf("%s: %q is no setting", unitFile, line)
		}
	}
	return u
}

var exposure = regexp.MustCompile(`Overall exposure level for zrlmpid\.service: ([0-9.]+)`)

// TestUnitSecurity checks that systemd rates the confinement of the service as good.
func TestUnitSecurity(t *testing.T) {
	analyze := needs(t, "the exposure of the service", "systemd-analyze", "systemd")
	out, err := exec.Command(analyze, "security", "--offline=true", "--no-pager", from(unitFile)).CombinedOutput()
	found := exposure.FindSubmatch(out)
	if err != nil || found == nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if level, err := strconv.ParseFloat(string(found[1]), 64); err != nil || level >= 2 {
		t.Errorf("the exposure is %s, and is to be under 2.0\n%s", found[1], out)
	}
}

// verify runs systemd-analyze verify on the unit, together with the units of this machine.
func verify(t *testing.T, root string) (string, error) {
	t.Helper()
	analyze := needs(t, "whether systemd takes the unit", "systemd-analyze", "systemd")
	host := "/usr/lib/systemd/system"
	if _, err := os.Stat(filepath.Join(host, "sysinit.target")); err != nil {
		missing(t, "whether systemd takes the unit", "the units of systemd are not installed (apt-get install systemd)")
	}
	if err := os.CopyFS(filepath.Join(root, host), os.DirFS(host)); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(analyze, "verify", "--root="+root, "--man=no", "--recursive-errors=no",
		"zrlmpid.service").CombinedOutput()
	return string(out), err
}

// TestUnitVerify checks that systemd understands every line of the unit, and that it would report a mistake.
func TestUnitVerify(t *testing.T) {
	root := func(t *testing.T, change func(string) string) string {
		dir := t.TempDir()
		text, err := os.ReadFile(from(unitFile))
		if err != nil {
			t.Fatal(err)
		}
		for _, program := range []string{"usr/bin/zrlmpid", "usr/bin/zrlctl"} {
			copyFile(t, filepath.Join(dir, program), os.Args[0], 0o755)
		}
		path := filepath.Join(dir, "etc/systemd/system/zrlmpid.service")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(change(string(text))), 0o644); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	if out, err := verify(t, root(t, func(s string) string { return s })); err != nil || out != "" {
		t.Errorf("%v\n%s", err, out)
	}
	for from, to := range map[string]string{"WatchdogSec=": "WatchdogSecs=", "=@system-service": "=@system-services",
		"Type=notify": "Type=notified", "ExecStart=/usr/bin/": "ExecStart=/usr/games/"} {
		out, err := verify(t, root(t, func(s string) string { return strings.Replace(s, from, to, 1) }))
		if err == nil && out == "" {
			t.Errorf("%q is taken", to)
		}
	}
}

// memory is a configuration in which ranks share memory and a kernel is a program.
const memory = `
ranks:
  - {rank: 0, address: 127.0.0.1, run: host}
  - {rank: 1, address: 127.0.0.2, run: standin, peer: software, kernel: echo}
  - {rank: 2, address: 127.0.0.3, run: standin, kernel: "exec:/usr/bin/zrlctl no-such-command", link: {profile: cloudfpga}}
defaults: {profile: extended}
`

// TestUnitSystemCalls checks that the daemon and a kernel program need only system calls that the unit allows. They run
// as the unit specifies: under a user with the sockets' group, and without capabilities.
func TestUnitSystemCalls(t *testing.T) {
	const what = "the service with its filter of system calls"
	needsRoot(t, what)
	u := readUnit(t)
	calls := allowed(t, needs(t, what, "systemd-analyze", "systemd"), u)
	who := account{uid: 61234, gid: 61235}
	member, stranger := account{uid: 61236, gid: who.gid}, account{uid: 61236, gid: 61237}
	command := strings.Fields(u["Service"]["ExecStart"][0])
	t.Run("as installed", func(t *testing.T) {
		root := emptyRoot(t, who)
		copyFile(t, filepath.Join(root, "etc/zrlmpid/zrlmpid.yaml"), from("deploy/packaging/zrlmpid.yaml"), 0o644)
		s := start(t, newNetwork(t), root, who, calls, []string{"RUNTIME_DIRECTORY=/run/zrlmpid"}, command...)
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
		if err != nil || !strings.Contains(string(status), "Seccomp:\t2\n") ||
			!strings.Contains(string(status), "CapEff:\t0000000000000000\n") {
			t.Fatalf("the service may do more: %v\n%s", err, status)
		}
		s.works(member)
		s.reloads(who, u)
		if out, err := s.try(stranger, "/usr/bin/zrlctl", "status"); err == nil {
			t.Errorf("a user of another group sees\n%s", out)
		}
		s.stops()
	})
	t.Run("shared memory and programs", func(t *testing.T) {
		root := emptyRoot(t, who)
		proc := filepath.Join(root, "proc") // without it, no sockets can be created in verified directories
		if err := os.MkdirAll(proc, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount("/proc", proc, "", syscall.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(proc, syscall.MNT_DETACH) })
		path := filepath.Join(root, "etc/zrlmpid/zrlmpid.yaml")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(memory), 0o644); err != nil {
			t.Fatal(err)
		}
		s := start(t, newNetwork(t), root, who, calls, []string{"RUNTIME_DIRECTORY=/run/zrlmpid"}, command...)
		if out := s.run(member, "/usr/bin/zrlctl", "ping", "1", "--words", "1,262160"); strings.Count(out, "1/1") != 2 {
			t.Errorf("ping:\n%s", out)
		}
		if out := s.run(member, "/usr/bin/zrlctl", "status"); !strings.Contains(out, "shm") {
			t.Errorf("no ranks share memory:\n%s", out)
		}
		s.log.waitFor(t, `there is no command \"no-such-command\"`)
		s.stops()
	})
}

// reloads checks that the unit reloads the service, and that this fails if the daemon rejects the configuration.
func (s *service) reloads(who account, u unit) {
	s.t.Helper()
	env := []string{"RUNTIME_DIRECTORY=/run/zrlmpid"}
	reload := strings.Fields(u["Service"]["ExecReload"][0])
	if out, err := s.tryWith(who, env, reload...); err != nil {
		s.t.Errorf("reload: %v\n%s", err, out)
	}
	path := filepath.Join(s.root, "etc/zrlmpid/zrlmpid.yaml")
	sound, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	for text, want := range map[string]string{
		string(sound) + "  - {rank: 4, address: 127.0.0.5, run: standin}\n": "these changes need a restart",
		string(sound) + "  - {rank: 4\n":                                    "the { is not closed",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			s.t.Fatal(err)
		}
		if out, err := s.tryWith(who, env, reload...); err == nil || !strings.Contains(out, want) {
			s.t.Errorf("a reload that is to be refused with %q: %v\n%s", want, err, out)
		}
	}
	if err := os.WriteFile(path, sound, 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// TestUnitRestarts checks that the service is restarted without limit after transient failures, but not after failures
// that require an edit.
func TestUnitRestarts(t *testing.T) {
	u := readUnit(t)
	for _, want := range [][3]string{
		{"Unit", "StartLimitIntervalSec", "0"}, {"Service", "Restart", "on-failure"},
		{"Service", "RestartPreventExitStatus", "2"},
	} {
		if got := u[want[0]][want[1]]; len(got) != 1 || got[0] != want[2] {
			t.Errorf("%s is %q, want %s", want[1], got, want[2])
		}
	}
}

// emptyRoot returns a root folder that contains the programs, and the directories that systemd would create for the
// service.
func emptyRoot(t *testing.T, who account) string {
	t.Helper()
	root := t.TempDir()
	for dir := root; dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, program := range []string{"zrlmpid", "zrlctl"} {
		copyFile(t, filepath.Join(root, "usr/bin", program), filepath.Join(programs, program), 0o755)
	}
	runtimeDirectory(t, root, who)
	return root
}

// runtimeDirectory creates /run/zrlmpid in the way systemd does.
func runtimeDirectory(t *testing.T, root string, who account) {
	t.Helper()
	u := readUnit(t)
	mode, err := strconv.ParseUint(u["Service"]["RuntimeDirectoryMode"][0], 8, 32)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "run", u["Service"]["RuntimeDirectory"][0])
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, int(who.uid), int(who.gid)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, os.FileMode(mode)); err != nil {
		t.Fatal(err)
	}
}
