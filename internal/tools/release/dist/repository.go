package dist

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/blakesmith/ar"
)

// writeRepository writes Packages and Release, which make the folder of the release a repository for apt in the flat
// format. Its signature is InRelease.
func (r *Release) writeRepository(context.Context) error {
	files, err := filepath.Glob(r.file("*.deb"))
	if err != nil {
		return err
	}
	var packages strings.Builder
	for _, file := range files {
		control, err := debControl(file)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		sum, err := sha256File(file)
		if err != nil {
			return err
		}
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		fmt.Fprintf(&packages, "%s\nFilename: ./%s\nSize: %d\nSHA256: %s\n\n", strings.TrimRight(control, "\n"),
			filepath.Base(file), info.Size(), sum)
	}
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	if _, err := io.WriteString(writer, packages.String()); err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	release := fmt.Sprintf("Origin: zrlmpid\nLabel: zrlmpid\nSuite: stable\nVersion: %s\nDate: %s\n"+
		"Architectures: %s\nDescription: packages of zrlmpid\nSHA256:\n", r.PackageVersion(),
		r.Time.Format("Mon, 02 Jan 2006 15:04:05 UTC"), strings.Join(r.architectures(), " "))
	for _, file := range []struct {
		name string
		data []byte
	}{{"Packages", []byte(packages.String())}, {"Packages.gz", compressed.Bytes()}} {
		if err := os.WriteFile(r.file(file.name), file.data, 0o644); err != nil {
			return err
		}
		release += fmt.Sprintf(" %x %d %s\n", sha256.Sum256(file.data), len(file.data), file.name)
	}
	return os.WriteFile(r.file("Release"), []byte(release), 0o644)
}

// debControl returns the control file of a Debian package.
func debControl(file string) (string, error) {
	in, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer in.Close()
	members := ar.NewReader(in)
	for {
		header, err := members.Next()
		if err != nil {
			return "", fmt.Errorf("no control.tar.gz: %w", err)
		}
		if strings.TrimRight(header.Name, "/") == "control.tar.gz" {
			break
		}
	}
	archive, err := gzip.NewReader(members)
	if err != nil {
		return "", err
	}
	files := tar.NewReader(archive)
	for {
		header, err := files.Next()
		if err != nil {
			return "", fmt.Errorf("no control file: %w", err)
		}
		if filepath.Base(header.Name) == "control" {
			text, err := io.ReadAll(files)
			return string(text), errors.Join(err, archive.Close())
		}
	}
}
