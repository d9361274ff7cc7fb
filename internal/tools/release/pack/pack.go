// Package pack makes the Debian and RPM packages described in .goreleaser.yaml. It uses the same library as goreleaser,
// but does not spend minutes on compiling, so that tests can install the packages that users install. It must never
// publish anything.
package pack

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/goreleaser/goreleaser/v2/pkg/config"
	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers the format
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers the format
)

// Options specifies which packages to make, and from which files.
type Options struct {
	// Config is the path of .goreleaser.yaml. Paths in it are relative to the working directory.
	Config string
	// Arch is a GOARCH value. Version may begin with the letter v.
	Arch, Version string
	// Binaries is the folder that contains the binaries to package.
	Binaries string
	// Formats lists formats: deb, rpm or both. The default is all formats in the configuration.
	Formats []string
	// Into is the folder for the packages. It is created if necessary.
	Into string
	// Time is the time of the commit, which becomes the modification time of all packaged files. Zero means to keep the
	// files' own modification times.
	Time time.Time
}

// commitDate is the only value of the setting mtime that this package supports.
const commitDate = "{{ .CommitDate }}"

// ErrUnsupported is returned for a setting that goreleaser supports but this package does not.
var ErrUnsupported = errors.New("only goreleaser itself can do that")

// Make makes all packages and returns their paths.
func Make(o Options) ([]string, error) {
	project, err := config.Load(o.Config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Config, err)
	}
	if err := os.MkdirAll(o.Into, 0o755); err != nil {
		return nil, err
	}
	var made []string
	for _, p := range project.NFPMs {
		for _, format := range p.Formats {
			if len(o.Formats) > 0 && !slices.Contains(o.Formats, format) {
				continue
			}
			file, err := one(&project, &p, format, o)
			if err != nil {
				return made, fmt.Errorf("%s: package %s, %s: %w", o.Config, p.PackageName, format, err)
			}
			made = append(made, file)
		}
	}
	if len(made) == 0 {
		return nil, fmt.Errorf("%s: it describes no packages", o.Config)
	}
	return made, nil
}

// one makes one package and returns its path.
func one(project *config.Project, p *config.NFPM, format string, o Options) (file string, err error) {
	if err := supported(p); err != nil {
		return "", err
	}
	info := &nfpm.Info{
		Name: p.PackageName, Arch: o.Arch, Platform: "linux", Version: o.Version,
		Section: p.Section, Priority: p.Priority, Maintainer: p.Maintainer,
		Description: p.Description, Vendor: p.Vendor, Homepage: p.Homepage, License: p.License, MTime: o.Time,
	}
	info.RPM.BuildHost = p.RPM.BuildHost
	info.Depends, info.Recommends = p.Overrides[format].Dependencies, p.Overrides[format].Recommends
	info.Scripts = nfpm.Scripts{PostInstall: p.Scripts.PostInstall, PreRemove: p.Scripts.PreRemove,
		PostRemove: p.Scripts.PostRemove}
	for _, c := range p.Contents {
		mode := cmp.Or(c.FileInfo.Mode, 0o644) // so that the umask of the checkout has no effect
		info.Contents = append(info.Contents,
			&files.Content{Source: c.Source, Destination: c.Destination, Type: c.Type, Packager: c.Packager,
				FileInfo: &files.ContentFileInfo{Mode: mode}})
	}
	for _, b := range project.Builds {
		if slices.Contains(p.IDs, b.ID) {
			info.Contents = append(info.Contents, &files.Content{
				Source: filepath.Join(o.Binaries, b.Binary), Destination: path.Join(p.Bindir, b.Binary),
				FileInfo: &files.ContentFileInfo{Mode: 0o755},
			})
		}
	}
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return "", err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return "", err
	}
	file = filepath.Join(o.Into, packager.ConventionalFileName(info))
	out, err := os.Create(file)
	if err != nil {
		return "", err
	}
	return file, errors.Join(packager.Package(info, out), out.Close())
}

// supported returns an error if p contains a setting that this package ignores.
func supported(p *config.NFPM) error {
	rest := *p
	rest.ID, rest.IDs, rest.PackageName, rest.Formats, rest.Bindir = "", nil, "", nil, ""
	rest.Section, rest.Priority, rest.Maintainer, rest.Description, rest.Vendor, rest.Homepage, rest.License = "", "",
		"", "", "", "", ""
	rest.Scripts.PostInstall, rest.Scripts.PreRemove, rest.Scripts.PostRemove = "", "", ""
	rest.Contents, rest.Overrides = nil, nil
	rest.RPM.BuildHost = ""
	if rest.MTime == commitDate {
		rest.MTime = ""
	}
	if !reflect.ValueOf(rest).IsZero() {
		return fmt.Errorf("%w: a setting of nfpms that package pack does not know", ErrUnsupported)
	}
	for _, c := range p.Contents {
		c.Source, c.Destination, c.Type, c.Packager, c.FileInfo.Mode = "", "", "", "", 0
		if !reflect.ValueOf(c).IsZero() {
			return fmt.Errorf("%w: a setting of contents other than src, dst, type, packager and file_info.mode",
				ErrUnsupported)
		}
	}
	for _, o := range p.Overrides {
		o.Dependencies, o.Recommends = nil, nil
		if !reflect.ValueOf(o).IsZero() {
			return fmt.Errorf("%w: a setting of overrides other than dependencies and recommends", ErrUnsupported)
		}
	}
	return nil
}
