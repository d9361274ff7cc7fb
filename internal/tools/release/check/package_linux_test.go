package check

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/tools/release/dist"
)

// manual builds the manual pages and the completions, but only once.
var manual = sync.OnceValue(func() error {
	cmd := exec.Command("make", "man")
	cmd.Dir = repository
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make man: %w\n%s", err, out)
	}
	return nil
})

// copyrights writes the copyright file of all artifacts, but only once.
var copyrights = sync.OnceValues(func() ([]dist.Module, error) {
	r, err := dist.New(context.Background(), dist.Options{Version: "v1.2.3", Platforms: platforms})
	if err == nil {
		err = r.WriteCopyright(context.Background())
	}
	if err != nil {
		return nil, err
	}
	return r.Modules, nil
})

// platforms lists the platform of this machine, for tests that run programs.
var platforms = []string{"linux/" + runtime.GOARCH}

// newRelease returns a release in the root of the repository, which becomes the working directory.
func newRelease(t *testing.T, version string) *dist.Release {
	t.Helper()
	if err := manual(); err != nil {
		t.Fatal(err)
	}
	t.Chdir(repository)
	modules, err := copyrights()
	if err != nil {
		t.Fatal(err)
	}
	r, err := dist.New(t.Context(), dist.Options{Version: "v" + version, Platforms: platforms, Snapshot: true,
		Into: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	r.Modules = modules
	return r
}

// makePackage makes a package in the way `make release` does. As most of the time is spent on compression, the binaries
// contain only two words of text unless real is set.
func makePackage(t *testing.T, r *dist.Release, format string, real bool) string {
	t.Helper()
	binaries := programs
	if !real {
		binaries = t.TempDir()
		for _, name := range []string{"zrlmpid", "zrlctl", "zrlbench"} {
			if err := os.WriteFile(filepath.Join(binaries, name), []byte("not real"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	file, err := r.MakePackage("zrlmpid", format, runtime.GOARCH, binaries, []string{filepath.Join(programs, "zrlmpid"),
		filepath.Join(programs, "zrlctl"), filepath.Join(programs, "zrlbench")})
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// hostPrograms are the programs that the unit and the scripts of the package call. They are copied from this machine,
// so the test needs no network to make a root folder.
var hostPrograms = []string{"/bin/sh", "/usr/bin/systemd-sysusers", "/bin/rm", "/bin/kill"}

// helper stands for deb-systemd-helper, which needs Perl: it records its arguments, and confirms all questions.
const helper = "#!/bin/sh\necho \"$@\" >>/var/log/deb-systemd-helper\n"

// debianRoot returns a root folder into which dpkg can install the package.
func debianRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for dir := root; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, program := range hostPrograms {
		if _, err := os.Stat(program); err != nil {
			missing(t, "installing the package", program+" is not installed")
		}
		copyFile(t, filepath.Join(root, program), program, 0o755)
		libraries, err := exec.Command("ldd", program).Output()
		if err != nil {
			t.Fatalf("ldd %s: %v", program, err)
		}
		for word := range strings.FieldsSeq(string(libraries)) {
			if strings.HasPrefix(word, "/") {
				copyFile(t, filepath.Join(root, word), word, 0o755)
			}
		}
	}
	for file, text := range map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/bin/sh\n", "etc/group": "root:x:0:\n",
		"etc/nsswitch.conf": "group: files\n",
		"etc/login.defs":    "SYS_GID_MIN 100\nSYS_GID_MAX 999\n", "var/lib/dpkg/status": "",
		"var/lib/dpkg/info/format":   "1\n",
		"var/lib/dpkg/updates/.keep": "", "var/lib/dpkg/available": "", "var/log/.keep": "", "tmp/.keep": "",
		"dev/null": "",
	} {
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	helperPath := filepath.Join(root, "usr/bin/deb-systemd-helper")
	if err := os.WriteFile(helperPath, []byte(helper), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(root, "var/lib/dpkg/updates/.keep")); err != nil {
		t.Fatal(err)
	}
	return root
}

// dpkg runs dpkg on a root folder. Its database does not contain the packages on which ours depends.
func dpkg(t *testing.T, root string, args ...string) string {
	t.Helper()
	cmd := exec.Command("dpkg", append([]string{"--root=" + root, "--force-depends"}, args...)...)
	// dpkg requires ldconfig
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("dpkg %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// group returns the ID of a group that exists in a root folder.
func group(t *testing.T, root, name string) uint32 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "etc/group"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Split(line, ":"); fields[0] == name {
			return number(t, fields[2])
		}
	}
	t.Fatalf("the package has made no group %s:\n%s", name, text)
	return 0
}

// TestPackage installs the package, runs the service as the unit specifies, upgrades the package when the configuration
// has been modified, and removes it.
func TestPackage(t *testing.T) {
	needsRoot(t, "installing the package")
	needs(t, "installing the package", "dpkg", "dpkg")
	deb := makePackage(t, newRelease(t, "1.2.3-rc.1"), "deb", true)
	root := debianRoot(t)
	dpkg(t, root, "--install", deb)
	if out, err := verify(t, root); err != nil || out != "" {
		t.Errorf("the unit as it is installed: %v\n%s", err, out)
	}
	who := account{uid: 61234, gid: group(t, root, "zrlmpi")}
	runtimeDirectory(t, root, who)
	s := start(t, newNetwork(t), root, who, "", nil, strings.Fields(readUnit(t)["Service"]["ExecStart"][0])...)
	member := account{uid: 61236, gid: 61237, groups: []uint32{who.gid}}
	s.works(member)
	if out, err := s.attaches(member); err != nil {
		t.Errorf("a member of the group cannot attach: %v\n%s", err, out)
	}
	if out, err := s.attaches(account{uid: 61236, gid: 61237}); err == nil {
		t.Errorf("a user of another group attaches:\n%s", out)
	}
	s.stops()

	conf := filepath.Join(root, "etc/zrlmpid/zrlmpid.yaml")
	if err := os.WriteFile(conf, []byte("# mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	newer := makePackage(t, newRelease(t, "1.2.3"), "deb", false)
	dpkg(t, root, "--install", newer)
	if text, err := os.ReadFile(conf); err != nil || string(text) != "# mine\n" {
		t.Errorf("after an upgrade the configuration is %q, %v", text, err)
	}
	state := filepath.Join(root, "var/lib/private/zrlmpid/records")
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("private/zrlmpid", filepath.Join(root, "var/lib/zrlmpid")); err != nil {
		t.Fatal(err)
	}
	dpkg(t, root, "--remove", "zrlmpid")
	if _, err := os.Stat(state); err != nil {
		t.Errorf("removing deletes the state: %v", err)
	}
	if _, err := os.Stat(conf); err != nil {
		t.Errorf("removing takes the configuration with it: %v", err)
	}
	dpkg(t, root, "--purge", "zrlmpid")
	for _, path := range []string{"etc/zrlmpid", "usr/bin/zrlmpid", "usr/lib/systemd/system/zrlmpid.service",
		"usr/share/doc/zrlmpid", "var/lib/zrlmpid", "var/lib/private/zrlmpid"} {
		if _, err := os.Lstat(filepath.Join(root, path)); err == nil {
			t.Errorf("purging leaves %s", path)
		}
	}
	calls, err := os.ReadFile(filepath.Join(root, "var/log/deb-systemd-helper"))
	if err != nil {
		t.Fatal(err)
	}
	configure := []string{"debian-installed", "unmask", "--quiet was-enabled", "enable", "update-state"}
	var want string
	for _, call := range slices.Concat(configure, configure, []string{"purge", "unmask"}) {
		want += call + " zrlmpid.service\n"
	}
	if string(calls) != want {
		t.Errorf("calls of deb-systemd-helper:\n%s\nwant\n%s", calls, want)
	}
}

// TestContents checks the contents of both packages.
func TestContents(t *testing.T) {
	r := newRelease(t, "1.2.3")
	deb, rpm := makePackage(t, r, "deb", false), makePackage(t, r, "rpm", false)
	want := []string{
		"/usr/bin/zrlmpid", "/usr/bin/zrlctl", "/usr/bin/zrlbench", "/etc/zrlmpid/zrlmpid.yaml",
		"/usr/lib/systemd/system/zrlmpid.service",
		"/usr/lib/sysusers.d/zrlmpid.conf", "/usr/lib/sysctl.d/60-zrlmpid.conf", "/usr/share/man/man8/zrlmpid.8.gz",
		"/usr/share/man/man5/zrlmpid.yaml.5.gz", "/usr/share/man/man1/zrlctl.1.gz",
		"/usr/share/man/man1/zrlctl-status.1.gz",
		"/usr/share/man/man1/zrlbench.1.gz", "/usr/share/man/man1/zrlbench-tune.1.gz",
		"/usr/share/bash-completion/completions/zrlbench",
		"/usr/share/bash-completion/completions/zrlctl", "/usr/share/doc/zrlmpid/NOTICE",
		"/usr/share/fish/vendor_completions.d/zrlmpid.fish",
	}
	for _, tt := range []struct {
		file    string
		command []string
		debian  string
		others  []string
	}{
		{deb, []string{"dpkg-deb", "--fsys-tarfile"}, "dpkg", []string{"/usr/share/zsh/vendor-completions/_zrlctl",
			"/usr/share/doc/zrlmpid/copyright", "/usr/share/doc/zrlmpid/changelog.Debian.gz",
			"/usr/share/lintian/overrides/zrlmpid"}},
		{rpm, []string{"rpm", "-qpl"}, "rpm", []string{"/usr/share/zsh/site-functions/_zrlctl",
			"/usr/share/licenses/zrlmpid/LICENSE", "/usr/share/licenses/zrlmpid/copyright"}},
	} {
		t.Run(filepath.Ext(tt.file), func(t *testing.T) {
			needs(t, "the contents of a package", tt.command[0], tt.debian)
			out, err := exec.Command(tt.command[0], append(tt.command[1:], tt.file)...).Output()
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range slices.Concat(want, tt.others) {
				if !strings.Contains(string(out), strings.TrimPrefix(path, "/")) {
					t.Errorf("%s is missing", path)
				}
			}
		})
	}
}
