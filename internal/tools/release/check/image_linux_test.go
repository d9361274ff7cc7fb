package check

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// image is an image in a folder: its root, and the settings with which it starts.
type image struct {
	root            string
	who             account
	env             []string
	command, health []string
}

// buildImage makes the image and unpacks its files.
func buildImage(t *testing.T) *image {
	t.Helper()
	r := newRelease(t, "1.2.3")
	made, err := r.Image(runtime.GOARCH, programs)
	if err != nil {
		t.Fatal(err)
	}
	written, err := layout.Write(t.TempDir(), empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := written.AppendImage(made); err != nil {
		t.Fatal(err)
	}
	index, err := written.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Fatal(err)
	}
	file, err := made.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if file.OS != "linux" || file.Architecture != runtime.GOARCH || file.Config.StopSignal != "SIGTERM" {
		t.Errorf("OS %q, architecture %q, signal %q", file.OS, file.Architecture, file.Config.StopSignal)
	}
	for _, label := range []string{"title", "description", "source", "version", "revision", "licenses"} {
		if file.Config.Labels["org.opencontainers.image."+label] == "" {
			t.Errorf("no label %s in %q", label, file.Config.Labels)
		}
	}
	m := &image{root: t.TempDir(), env: file.Config.Env,
		command: slices.Concat(file.Config.Entrypoint, file.Config.Cmd)}
	uid, gid, _ := strings.Cut(file.Config.User, ":")
	m.who = account{uid: number(t, uid), gid: number(t, gid)}
	kind, health := file.Config.Healthcheck.Test[0], file.Config.Healthcheck.Test[1:]
	if m.health = health; kind != "CMD" {
		t.Errorf("the health check is %s %q, and there is no shell", kind, health)
	}
	for dir := m.root; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	unpack(t, m.root, mutate.Extract(made))
	return m
}

// unpack unpacks a tar archive with the owners and modes of its files.
func unpack(t *testing.T, root string, from io.ReadCloser) {
	t.Helper()
	defer from.Close()
	for archive := tar.NewReader(from); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, header.Name)
		switch header.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(path, 0o755)
		case tar.TypeReg:
			var data []byte
			if data, err = io.ReadAll(archive); err == nil {
				err = os.WriteFile(path, data, 0o644)
			}
		default:
			err = fmt.Errorf("type %c", header.Typeflag)
		}
		if err := errors.Join(err, os.Chown(path, header.Uid, header.Gid),
			os.Chmod(path, header.FileInfo().Mode())); err != nil {
			t.Fatalf("%s: %v", header.Name, err)
		}
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
	s := start(t, newNetwork(t), m.root, m.who, "", m.env, m.command...)
	s.run(m.who, m.health...)
	s.works(m.who)
	s.stops()
	if out, err := s.try(m.who, m.health...); err == nil {
		t.Errorf("the health check of an exited container is\n%s", out)
	}
	text, err := os.ReadFile(from("deploy/packaging/zrlmpid.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	m.configure(t, string(text))
	s = start(t, newNetwork(t), m.root, m.who, "", m.env, m.command...)
	s.records(m.who, m.env)
	s.stops()
}

// configure installs a configuration, and adds a rank 4 that does not run.
func (m *image) configure(t *testing.T, text string) {
	t.Helper()
	text += "  - {rank: 4, address: 127.0.0.5, peer: cpu}\n"
	if err := os.WriteFile(filepath.Join(m.root, "etc/zrlmpid/zrlmpid.yaml"), []byte(text), 0o644); err != nil {
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

// TestImageOfAPod runs the image as deploy/kubernetes does: the root is read-only, /dev/shm has 64 MiB, and the volume
// belongs to root and the pod's group.
func TestImageOfAPod(t *testing.T) {
	needsRoot(t, "the image in a pod")
	m := buildImage(t)
	manifest, err := os.ReadFile(from("deploy/kubernetes/standins/zrlmpid.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(manifest), "\n  zrlmpid.yaml: |\n")
	if !found {
		t.Fatal("the manifest has no configuration")
	}
	text, _, _ = strings.Cut(text, "---\n")
	m.configure(t, strings.ReplaceAll(strings.TrimPrefix(text, "    "), "\n    ", "\n"))

	mount := func(source, target, kind string, flags uintptr, options string) {
		t.Helper()
		if err := syscall.Mount(source, target, kind, flags, options); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(target, syscall.MNT_DETACH) }) // the folder is removed next
	}
	shm, volume := filepath.Join(m.root, "dev/shm"), filepath.Join(m.root, "var/lib/zrlmpid/volume")
	for _, dir := range []string{shm, volume} { // as a container runtime does
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mount(m.root, m.root, "", syscall.MS_BIND, "")
	if err := syscall.Mount("", m.root, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	mount("tmpfs", shm, "tmpfs", 0, "size=64m,mode=1777")
	mount("tmpfs", volume, "tmpfs", 0, fmt.Sprintf("mode=2777,gid=%d", m.who.gid))
	env := append(m.env, "ZRLMPID_CONTROL_SOCKET=/dev/shm/zrlmpid/control.sock",
		"STATE_DIRECTORY=/var/lib/zrlmpid/volume/state")
	s := start(t, newNetwork(t), m.root, m.who, "", env, m.command...)
	s.records(m.who, env)
	s.stops()
}
