package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/internal/testkit/configmap"
	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// podUser is the user and group of the pod.
const podUser = 65532

// manifest holds the fields of objects of Kubernetes that decide how the pod runs.
type manifest struct {
	Kind string
	Data map[string]string // of a ConfigMap
	Spec struct {          // of a StatefulSet
		Template struct {
			Spec struct {
				SecurityContext struct {
					RunAsUser  int `yaml:"runAsUser"`
					RunAsGroup int `yaml:"runAsGroup"`
					FSGroup    int `yaml:"fsGroup"`
				} `yaml:"securityContext"`
				Containers []struct {
					Args         []string
					Env          []struct{ Name, Value string }
					VolumeMounts []struct {
						Name      string
						MountPath string `yaml:"mountPath"`
					} `yaml:"volumeMounts"`
				}
			}
		}
	}
}

// podScript starts a program like a container runtime: in the root file system $1, read-only but for its volumes, as
// the user $2, without network. $3 has the volumes, in folders named as the paths on which they are mounted.
const podScript = `set -e
root=$1 user=$2 volumes=$3; shift 3
ip link set lo up
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=1777,size=64m shm "$root/dev/shm"
(cd "$volumes"; find . -mindepth 1 -type d -name '*@' | while read -r volume; do echo "${volume%@}"; done) |
	while read -r path; do mount --bind "$volumes/$path@" "$root/$path"; done
mount -o remount,bind,ro "$root"
exec chroot --userspec="$user:$user" --groups="$user" "$root" "$@"`

// TestPod runs the program in the way in which Kubernetes runs the pod of the example with stand-ins, with the files,
// owners and modes of the image and of the kubelet. A changed ConfigMap is reloaded while messages are exchanged, and
// the volume has the records.
func TestPod(t *testing.T) {
	needs.Root(t, "the pod of Kubernetes", "can mount file systems")
	for _, program := range []string{"unshare", "chroot"} {
		needs.Program(t, "the pod of Kubernetes", program, "util-linux coreutils")
	}
	needs.Program(t, "the pod of Kubernetes", "ip", "iproute2")
	config, set := readManifests(t, "../../deploy/kubernetes/standins/zrlmpid.yaml")
	pod := set.Spec.Template.Spec
	root, volumes := t.TempDir(), t.TempDir()
	if s := pod.SecurityContext; s.RunAsUser != podUser || s.RunAsGroup != podUser || s.FSGroup != podUser {
		t.Fatalf("the pod runs as %+v", s)
	}
	makeDir := func(path string, mode os.FileMode, owner, group int) string {
		t.Helper()
		err := errors.Join(os.MkdirAll(path, 0o755), os.Chown(path, owner, group), os.Chmod(path, mode))
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, path := range []string{"", "usr/bin", "proc", "dev/shm", "etc"} {
		makeDir(filepath.Join(root, path), 0o755, 0, 0)
	}
	makeDir(filepath.Join(root, "var/lib/zrlmpid"), 0o700, podUser, podUser)                   // as in the image
	cmd := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(root, "usr/bin"), ".") // as "make build"
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	container := pod.Containers[0]
	var files *configmap.Volume
	var volume string
	for _, mount := range container.VolumeMounts {
		makeDir(filepath.Join(root, mount.MountPath), 0o755, 0, 0)
		path := filepath.Join(volumes, mount.MountPath+"@")
		if mount.Name == "config" {
			files = configmap.New(t, makeDir(path, 0o755, 0, 0), config.Data)
		} else {
			volume = makeDir(path, 0o777|os.ModeSetgid, 0, podUser) // as the kubelet makes an emptyDir
		}
	}
	for _, env := range container.Env {
		t.Setenv(env.Name, env.Value)
	}
	t.Setenv("ZRLMPI_SOCKET_OWNER", fmt.Sprint(podUser))
	p := runCommand(t, "unshare", slices.Concat([]string{"--mount", "--net", "sh", "-c", podScript, "sh",
		root, fmt.Sprint(podUser), volumes, "/usr/bin/zrlmpid"}, container.Args)...)

	client := control.NewClient(fmt.Sprintf("/proc/%d/root%s", p.Process.Pid, os.Getenv("ZRLMPID_CONTROL_SOCKET")))
	defer client.Close()
	ping := func() error {
		return client.Ping(t.Context(), control.PingRequest{From: 0, To: 1, Words: 100, Count: 10, Datatype: "int",
			Timeout: testTimeout.String()}, func(trip control.Trip) error {
			if !trip.Verified {
				return fmt.Errorf("round trip: %s", trip.Error)
			}
			return nil
		})
	}
	stop, pinged := make(chan struct{}), error(nil)
	var pings sync.WaitGroup
	pings.Go(func() {
		for pinged == nil {
			select {
			case <-stop:
				return
			default:
				pinged = ping()
			}
		}
	})
	update := func(text, want string) {
		t.Helper()
		changed := maps.Clone(config.Data)
		changed["zrlmpid.yaml"] += text
		files.Update(changed)
		if line := p.says("configuration re"); !strings.Contains(line, want) {
			t.Errorf("the log says %q, want %q", line, want)
		}
	}
	update("limits: {posted: 1000}\n", "a restart is needed")
	update("stop_timeout: 3s\n", "stop_timeout: 2s -> 3s")
	close(stop)
	pings.Wait()
	if pinged != nil {
		t.Error(pinged)
	}
	for _, name := range []string{"records", "state/ranks"} {
		info, err := os.Stat(filepath.Join(volume, name))
		if err != nil || info.Mode().Perm() != 0o700 || info.Sys().(*syscall.Stat_t).Uid != podUser {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	p.signal(syscall.SIGTERM)
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
}

// readManifests returns the ConfigMap and the StatefulSet in a file.
func readManifests(t *testing.T, path string) (config, set manifest) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for documents := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var m manifest
		err := documents.Decode(&m)
		if errors.Is(err, io.EOF) {
			return config, set
		}
		if err != nil {
			t.Fatal(err)
		}
		switch m.Kind {
		case "ConfigMap":
			config = m
		case "StatefulSet":
			set = m
		}
	}
}
