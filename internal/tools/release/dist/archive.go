package dist

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// entry is a file or folder in an archive or an image.
type entry struct {
	// name is the slash-separated path in the archive. The names of folders end in a slash.
	name string
	// source is the file to be packed, unless data is its content.
	source string
	data   []byte
	mode   int64
	// owner is the user and group of the file in an image.
	owner int
}

// content returns the contents of the entry.
func (e entry) content() ([]byte, error) {
	if e.source == "" {
		return e.data, nil
	}
	return os.ReadFile(e.source)
}

// makeArchives makes the archives of all platforms from programs that are built. With all platforms, it adds the Helm
// chart.
func (r *Release) makeArchives(context.Context) error {
	if slices.Equal(r.Platforms, Platforms) {
		charts, err := filepath.Glob("bin/chart/*.tgz")
		if err != nil || len(charts) != 1 {
			return fmt.Errorf("bin/chart has %d charts, and must have one (make chart)", len(charts))
		}
		data, err := os.ReadFile(charts[0])
		if err != nil {
			return err
		}
		name := filepath.Base(charts[0])
		if err := os.WriteFile(r.file(name), data, 0o644); err != nil {
			return err
		}
		r.artifacts = append(r.artifacts, artifact{name, nil})
	}
	for _, p := range r.platforms() {
		entries, err := p.archiveEntries()
		if err != nil {
			return err
		}
		name := fmt.Sprintf("zrlmpid_%s_%s_%s", r.FileVersion(), p.os, p.arch)
		write, extension := writeTarball, ".tar.gz"
		if p.os == "windows" {
			write, extension = writeZip, ".zip"
		}
		out, err := os.Create(r.file(name + extension))
		if err != nil {
			return err
		}
		if err := errors.Join(write(out, name+"/", entries, r.Time), out.Close()); err != nil {
			return fmt.Errorf("archive %s: %w", name, err)
		}
		r.artifacts = append(r.artifacts, artifact{name + extension, p.files()})
	}
	return nil
}

// archiveEntries returns the files in the archive of a platform.
func (p platform) archiveEntries() ([]entry, error) {
	var all []entry
	for _, file := range p.files() {
		all = append(all, entry{name: filepath.Base(file), source: file, mode: 0o755})
	}
	patterns := [][2]string{
		{"", "README.md"}, {"", "CHANGELOG.md"}, {"", "LICENSE"}, {"", "NOTICE"}, {"", copyrightFile},
		{"wireshark/", "deploy/wireshark/zrlmpi.lua"},
	}
	if p.os == "linux" {
		patterns = append(patterns, [][2]string{
			{"man/", "bin/manual/man/*"}, {"completions/", "bin/manual/completions/*"},
			{"examples/", "deploy/zrlmpid.reference.yaml"}, {"systemd/", "deploy/systemd/*"},
			{"prometheus/", "deploy/prometheus/*.yml"}, {"grafana/", "deploy/grafana/zrlmpid.json"},
		}...)
	} else {
		patterns = append(patterns, [][2]string{
			{"man/", "bin/manual/man/zrlctl*"}, {"completions/", "bin/manual/completions/*zrlctl*"},
		}...)
	}
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern[1])
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("no file %s: %w", pattern[1], errors.Join(err, os.ErrNotExist))
		}
		for _, file := range files {
			all = append(all, entry{name: pattern[0] + filepath.Base(file), source: file, mode: 0o644})
		}
	}
	return all, nil
}

// writeTarball writes a gzip-compressed tar archive. All names begin with prefix.
func writeTarball(w io.Writer, prefix string, entries []entry, modified time.Time) error {
	compressed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	return errors.Join(writeTar(compressed, prefix, entries, modified), compressed.Close())
}

// writeTar writes a tar archive. All names begin with prefix.
func writeTar(w io.Writer, prefix string, entries []entry, modified time.Time) error {
	archive := tar.NewWriter(w)
	for _, each := range entries {
		data, err := each.content()
		if err != nil {
			return err
		}
		header := &tar.Header{Name: path.Join(prefix, each.name), Mode: each.mode, Size: int64(len(data)),
			Uid: each.owner, Gid: each.owner, ModTime: modified, Format: tar.FormatPAX, Typeflag: tar.TypeReg}
		if strings.HasSuffix(each.name, "/") {
			header.Typeflag, header.Name = tar.TypeDir, header.Name+"/"
		}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(data); err != nil {
			return err
		}
	}
	return archive.Close()
}

// writeZip writes a zip archive. All names begin with prefix.
func writeZip(w io.Writer, prefix string, entries []entry, modified time.Time) error {
	archive := zip.NewWriter(w)
	for _, each := range entries {
		data, err := each.content()
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: prefix + each.name, Method: zip.Deflate, Modified: modified}
		header.SetMode(os.FileMode(each.mode))
		file, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := io.Copy(file, bytes.NewReader(data)); err != nil {
			return err
		}
	}
	return archive.Close()
}
