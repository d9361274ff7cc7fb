package check

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

var installation = flag.String("installation", "",
	"test a snapshot in a new Debian system, and write a transcript to this `file`")

// debian is a Debian system that systemd has booted in a container: with its own network, which has no connection.
type debian struct {
	t      *testing.T
	leader string // the ID of its first process

	mu         sync.Mutex
	transcript *os.File
}

// TestInstallation makes a package of an older version and a snapshot, and uses them as an administrator does, on a new
// Debian system: verify, install, start, ping, upgrade while messages are exchanged, remove and purge. It is part of
// `make release-check`, because it takes minutes and downloads Debian.
func TestInstallation(t *testing.T) {
	if *installation == "" {
		t.Skip("it takes minutes: make release-check")
	}
	const what = "the packages on a new Debian system"
	needsRoot(t, what)
	needs(t, what, "debootstrap", "debootstrap")
	needs(t, what, "systemd-nspawn", "systemd-container")
	needs(t, what, "lintian", "lintian")
	gpg, minisign := releaseKeys(t)
	transcript, err := os.Create(*installation)
	if err != nil {
		t.Fatal(err)
	}
	defer transcript.Close()
	d := &debian{t: t, transcript: transcript}

	releases := t.TempDir()
	old := newRelease(t, "0.9.0")
	old.GPGKey, old.MinisignKey = gpg, minisign
	makePackage(t, old, "deb", true)
	if err := old.Describe(t.Context()); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(from("internal/tools/version.sh")).Output()
	if err != nil {
		t.Fatal(err)
	}
	version := strings.TrimSpace(string(out))
	d.host(repository, "env", "GPG_KEY="+gpg, "MINISIGN_KEY="+minisign, "make", "release", "SNAPSHOT=1",
		"PLATFORMS=linux/"+runtime.GOARCH, "VERSION="+version)
	for name, source := range map[string]string{"old": old.Into, "new": from("bin/release")} {
		if err := os.CopyFS(filepath.Join(releases, name), os.DirFS(source)); err != nil {
			t.Fatal(err)
		}
	}
	folder := filepath.Join(releases, "new")
	d.host(folder, "minisign", "-V", "-p", filepath.Join(filepath.Dir(minisign), "minisign.pub"), "-m", "SHA256SUMS")
	d.host(folder, "sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS")
	debs, err := filepath.Glob(filepath.Join(folder, "*.deb"))
	if err != nil || len(debs) != 3 {
		t.Fatalf("packages: %q, %v", debs, err)
	}
	d.host(folder, "lintian", append([]string{"--allow-root", "--tag-display-limit", "0", "--fail-on", "error,warning"},
		debs...)...)

	d.boot(releases)
	d.run("rm /etc/apt/sources.list; apt-get --version | head -1; systemctl --version | head -1")
	d.install("old")
	d.expect("inactive", "systemctl is-active zrlmpid || true")
	d.expect("disabled", "systemctl is-enabled zrlmpid || true")
	d.run("systemctl start zrlmpid")
	d.expect("1/1", "zrlctl ping all --words 1,347")
	// systemd.exec(5): the users of DynamicUser= are 61184 to 65519.
	d.expect("6", "stat -c %u /proc/$(systemctl show -P MainPID zrlmpid) | grep -x '6[1-5]...'")
	d.expect("0000000000000000", "grep CapEff /proc/$(systemctl show -P MainPID zrlmpid)/status")
	d.run("systemctl enable zrlmpid")
	d.run("echo '# mine' >>/etc/zrlmpid/zrlmpid.yaml")
	process := d.run("systemctl show -P MainPID zrlmpid")

	d.upgradeWhileMessagesFlow()

	if now := d.run("systemctl show -P MainPID zrlmpid"); now == process {
		t.Errorf("the upgrade has not restarted the service")
	}
	d.expect(version, "zrlmpid --version")
	d.expect("1/1", "zrlctl ping all --words 1,347")
	d.expect("enabled", "systemctl is-enabled zrlmpid")
	d.expect("# mine", "tail -1 /etc/zrlmpid/zrlmpid.yaml")

	d.run("apt-get remove -qy zrlmpid")
	d.expect("inactive", "systemctl is-active zrlmpid || true")
	d.expect("# mine", "tail -1 /etc/zrlmpid/zrlmpid.yaml")
	d.expect("/var/lib/zrlmpid", "ls -d /var/lib/zrlmpid")
	d.run("apt-get purge -qy zrlmpid")
	if left := d.run("find / -xdev -not -path '/proc/*' -name '*zrlmpid*' -not -path '/srv/*' " +
		"-not -path '/var/lib/apt/lists/*' -not -path '/etc/apt/*' -not -path '/var/log/*' " +
		"-not -path '/var/cache/apt/*'"); left != "" {
		t.Errorf("purging leaves\n%s", left)
	}
	d.expect("zrlmpi", "getent group zrlmpi")
}

// say appends to the transcript.
func (d *debian) say(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintf(d.transcript, format, args...)
}

// host runs a command outside of the system.
func (d *debian) host(dir, name string, args ...string) {
	d.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	d.say("host$ %s\n%s\n", strings.Join(cmd.Args, " "), out)
	if err != nil {
		d.t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}

// boot makes a system and boots it. Its folder /srv is releases.
func (d *debian) boot(releases string) {
	d.t.Helper()
	root := filepath.Join(d.t.TempDir(), "debian")
	d.host("/", "debootstrap", "--variant=minbase", "--include=systemd,systemd-sysv,dbus,procps", "bookworm", root)
	var console output
	cmd := exec.Command("systemd-nspawn", "--quiet", "--directory="+root, "--bind-ro="+releases+":/srv", "--boot",
		"--private-network", "--register=no", "--keep-unit", "--console=read-only")
	cmd.Stdout, cmd.Stderr = &console, &console
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		if out, err := exec.Command("nsenter", "-t", d.leader, "-a", "systemctl", "poweroff").CombinedOutput(); err != nil {
			d.t.Logf("poweroff: %v\n%s", err, out)
			_ = cmd.Process.Kill()
		}
		_ = cmd.Wait()
	})
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(testTimeout); ; <-tick.C {
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid))
		if d.leader = strings.TrimSpace(string(children)); d.leader != "" {
			out, err := exec.Command("nsenter", "-t", d.leader, "-a", "systemctl", "is-system-running",
				"--wait").CombinedOutput()
			if state := strings.TrimSpace(string(out)); state == "running" || state == "degraded" {
				d.say("# the new system is %s\n\n", state)
				return
			} else if time.Now().After(deadline) {
				d.t.Fatalf("the system is %s, %v\n%s", state, err, console.String())
			}
		} else if time.Now().After(deadline) {
			d.t.Fatalf("no process in the system:\n%s", console.String())
		}
	}
}

// try runs a shell's command in the system.
func (d *debian) try(ctx context.Context, command string) (string, error) {
	cmd := exec.CommandContext(ctx, "nsenter", "-t", d.leader, "-a", "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=/root", "DEBIAN_FRONTEND=noninteractive", "sh", "-c", command)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	text := strings.TrimSpace(out.String())
	status := ""
	if err != nil {
		status = fmt.Sprintf("[%v]\n", err)
	}
	d.say("debian$ %s\n%s\n%s\n", command, text, status)
	return text, err
}

// run is try with a command that must succeed.
func (d *debian) run(command string) string {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), 5*testTimeout)
	defer cancel()
	out, err := d.try(ctx, command)
	if err != nil {
		d.t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return out
}

// expect runs a command, and checks that its output contains a text.
func (d *debian) expect(want, command string) {
	d.t.Helper()
	if out := d.run(command); !strings.Contains(out, want) {
		d.t.Errorf("%s: %s, want %s", command, out, want)
	}
}

// install installs or upgrades the package from a release's folder.
func (d *debian) install(release string) {
	d.t.Helper()
	d.run("echo 'deb [signed-by=/srv/" + release + "/zrlmpid-archive-keyring.asc] file:/srv/" + release +
		" ./' >/etc/apt/sources.list.d/zrlmpid.list; apt-get update -q --error-on=any")
	d.run("apt-get install -qy --no-install-recommends zrlmpid")
}

// upgradeWhileMessagesFlow upgrades the package while one zrlctl sends messages in a loop, and new ones send one
// message each. Every message must come back unchanged, or its sender report an error.
func (d *debian) upgradeWhileMessagesFlow() {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), 10*testTimeout)
	defer cancel()
	upgraded := make(chan struct{})
	var wait sync.WaitGroup
	started := make(chan struct{}, 2)
	wait.Go(func() {
		started <- struct{}{}
		out, err := d.try(ctx, "zrlctl ping 1 --words 347 --count 100000000")
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || out == "" || ctx.Err() != nil {
			d.t.Errorf("a ping that the restart interrupts: %v\n%s", err, out)
		}
	})
	wait.Go(func() {
		succeeded, failed := 0, 0
		for once := true; ; once = false {
			out, err := d.try(ctx, "zrlctl ping 2 --words 347 --count 1")
			switch {
			case err == nil && strings.Contains(out, "1/1"):
				succeeded++
			case err != nil && out != "":
				failed++
			default:
				d.t.Errorf("a message got lost silently: %v\n%s", err, out)
			}
			if once {
				started <- struct{}{}
			}
			select {
			case <-upgraded:
				d.say("# messages during the upgrade: %d came back, %d failed with an error\n\n", succeeded, failed)
				if succeeded < 2 {
					d.t.Errorf("only %d messages came back", succeeded)
				}
				return
			case <-ctx.Done():
				return
			default:
			}
		}
	})
	<-started
	<-started
	d.install("new")
	close(upgraded)
	wait.Wait()
}
