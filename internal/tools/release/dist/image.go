package dist

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// imageUser is the user and group of the image's process.
const imageUser = 65532

// makeImage makes the image as an archive of an OCI layout, whose index has all architectures.
func (r *Release) makeImage(context.Context) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var programs []string
	for _, arch := range r.architectures() {
		p := platform{"linux", arch, []program{zrlmpid, zrlctl}}
		image, err := r.Image(arch, p.folder())
		if err != nil {
			return fmt.Errorf("image for %s: %w", arch, err)
		}
		programs = append(programs, p.files()...)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	folder := filepath.Join(buildFolder, "image")
	written, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	if err := written.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": strings.NewReplacer("~", "-", "+", "-").Replace(r.FileVersion()),
	})); err != nil {
		return err
	}
	name := fmt.Sprintf("zrlmpid_%s_image.tar", r.FileVersion())
	if err := writeFolder(r.file(name), folder, r.Time); err != nil {
		return err
	}
	r.artifacts = append(r.artifacts, artifact{name, programs})
	return nil
}

// Image returns the image for an architecture with the programs in a folder: no shell, and no files but the following.
// Its configuration has the settings of a Dockerfile, among them the health check, which is an extension of OCI's.
func (r *Release) Image(arch, programs string) (v1.Image, error) {
	var certificates bytes.Buffer
	for root := range bundle.Roots() {
		// A file of certificates cannot express constraints.
		if root.Constraint == nil {
			if err := pem.Encode(&certificates, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
				return nil, err
			}
		}
	}
	user := fmt.Sprintf("zrlmpid:x:%[1]d:%[1]d:zrlmpid:/var/lib/zrlmpid:/sbin/nologin\n", imageUser)
	entries := []entry{
		{name: "etc/", mode: 0o755}, {name: "etc/zrlmpid/", mode: 0o755}, {name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755}, {name: "run/", mode: 0o755}, {name: "tmp/", mode: 0o1777},
		{name: "root/", mode: 0o700}, // for pods with AF_XDP, which run as root
		{name: "usr/", mode: 0o755}, {name: "usr/bin/", mode: 0o755}, {name: "usr/share/", mode: 0o755},
		{name: "usr/share/doc/", mode: 0o755}, {name: "usr/share/doc/zrlmpid/", mode: 0o755},
		{name: "var/", mode: 0o755}, {name: "var/lib/", mode: 0o755},
		// For sockets, and for the state of hosts; a volume keeps that for the next container.
		{name: "run/zrlmpid/", mode: 0o750, owner: imageUser},
		{name: "var/lib/zrlmpid/", mode: 0o700, owner: imageUser},
		{name: "etc/passwd", data: []byte("root:x:0:0:root:/:/sbin/nologin\n" + user), mode: 0o644},
		{name: "etc/group", data: fmt.Appendf(nil, "root:x:0:\nzrlmpi:x:%d:\n", imageUser), mode: 0o644},
		// For programs that users add as kernels.
		{name: "etc/ssl/certs/ca-certificates.crt", data: certificates.Bytes(), mode: 0o644},
		{name: "etc/zrlmpid/zrlmpid.yaml", source: "deploy/packaging/zrlmpid.yaml", mode: 0o644},
		{name: "usr/share/doc/zrlmpid/copyright", source: copyrightFile, mode: 0o644},
		{name: "usr/share/doc/zrlmpid/LICENSE", source: "LICENSE", mode: 0o644},
		{name: "usr/share/doc/zrlmpid/NOTICE", source: "NOTICE", mode: 0o644},
		{name: "usr/bin/zrlmpid", source: filepath.Join(programs, "zrlmpid"), mode: 0o755},
		{name: "usr/bin/zrlctl", source: filepath.Join(programs, "zrlctl"), mode: 0o755},
	}
	var data bytes.Buffer
	if err := writeTarball(&data, "", entries, r.Time); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1),
		types.OCIConfigJSON), layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: r.Time}
	config.History = []v1.History{{Created: config.Created, CreatedBy: "make release"}}
	config.Config = v1.Config{
		User:       fmt.Sprintf("%[1]d:%[1]d", imageUser),
		Entrypoint: []string{"/usr/bin/zrlmpid"},
		Cmd:        []string{"--config", "/etc/zrlmpid/zrlmpid.yaml"},
		// All hosts of the container's network have access. On the network of the host, set another address.
		Env:          []string{"STATE_DIRECTORY=/var/lib/zrlmpid", "ZRLMPID_HTTP_LISTEN=:9627"},
		ExposedPorts: map[string]struct{}{"2718/udp": {}, "2718/tcp": {}, "9627/tcp": {}},
		StopSignal:   "SIGTERM",
		WorkingDir:   "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":       "zrlmpid",
			"org.opencontainers.image.description": "Message Passing Engine in software for IBM's cloudFPGA MPI (ZRLMPI)",
			"org.opencontainers.image.source":      project,
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.version":     r.FileVersion(),
			"org.opencontainers.image.revision":    r.Commit,
		},
		// zrlctl fails if no daemon answers.
		Healthcheck: &v1.HealthConfig{Test: []string{"CMD", "/usr/bin/zrlctl", "status"}, Interval: 10 * time.Second,
			Timeout: 5 * time.Second, StartPeriod: 10 * time.Second, Retries: 3},
	}
	return mutate.ConfigFile(image, config)
}

// writeFolder writes the files of a folder into a tar archive.
func writeFolder(file, folder string, modified time.Time) error {
	var entries []entry
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			entries = append(entries, entry{name: name, source: filepath.Join(folder, name), mode: 0o644})
		}
		return err
	})
	if err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(writeTar(out, "", entries, modified), out.Close())
}
