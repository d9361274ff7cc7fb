package dist

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers the format
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers the format
)

const (
	project    = "https://github.com/zrlmpi/zrlmpid"
	maintainer = "zrlmpid developers <noreply@github.com>"
	// packageRelease is the revision of packages of one version.
	packageRelease = "1"
	// The changelogs of packages, and the licenses of all files in artifacts.
	debianChangelog = buildFolder + "/changelog.Debian.gz"
	rpmChangelog    = buildFolder + "/changelog.yaml"
	copyrightFile   = buildFolder + "/copyright"
)

// makePackages builds the programs of all platforms and the C library, and makes the packages for Linux.
func (r *Release) makePackages(ctx context.Context) error {
	for _, p := range r.platforms() {
		if err := r.buildPrograms(ctx, p); err != nil {
			return err
		}
		if p.os != "linux" {
			continue
		}
		if err := r.makeBoth("zrlmpid", p.arch, p.folder(), p.files()); err != nil {
			return err
		}
		if err := r.BuildLibrary(ctx, p.arch); r.Snapshot && errors.Is(err, exec.ErrNotFound) {
			fmt.Fprintln(os.Stderr, "NOT BUILT:", err)
			continue
		} else if err != nil {
			return err
		}
		folder := LibraryFolder(p.arch)
		if err := r.makeBoth("libzrlmpi", p.arch, folder, []string{folder + "/lib/libzrlmpi.so"}); err != nil {
			return err
		}
		if err := r.makeBoth("libzrlmpi-dev", p.arch, folder, nil); err != nil {
			return err
		}
	}
	return nil
}

// makeBoth makes the Debian and the RPM package that a configuration describes.
func (r *Release) makeBoth(name, arch, build string, programs []string) error {
	for _, format := range []string{"deb", "rpm"} {
		if _, err := r.MakePackage(name, format, arch, build, programs); err != nil {
			return err
		}
	}
	return nil
}

// MakePackage makes a package and returns its path: name is the package's, format is deb or rpm, arch a GOARCH value,
// build the folder of what was built, and programs the Go programs and libraries in the package. It needs the copyright
// file.
func (r *Release) MakePackage(name, format, arch, build string, programs []string) (string, error) {
	if err := r.writeChangelogs(); err != nil {
		return "", err
	}
	info, err := r.packageInfo(name, format, build)
	if err != nil {
		return "", fmt.Errorf("package %s: %w", name, err)
	}
	info.Arch = arch
	packager, err := nfpm.Get(format)
	if err != nil {
		return "", err
	}
	file := fmt.Sprintf("%s_%s_linux_%s.%s", name, r.FileVersion(), arch, format)
	r.artifacts = append(r.artifacts, artifact{file, programs})
	out, err := os.Create(r.file(file))
	if err != nil {
		return "", err
	}
	if err := errors.Join(packager.Package(info, out), out.Close()); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return r.file(file), nil
}

// packageInfo returns the description of a package from its configuration, with the settings that all packages share.
func (r *Release) packageInfo(name, format, build string) (*nfpm.Info, error) {
	version := r.PackageVersion() + "-" + packageRelease
	variables := map[string]string{"PROGRAMS": build, "LIBRARY": build, "VERSION": version}
	config, err := nfpm.ParseFileWithEnvMapping("deploy/packaging/"+name+".nfpm.yaml",
		func(key string) string { return variables[key] })
	if err != nil {
		return nil, err
	}
	info, err := config.Get(format)
	if err != nil {
		return nil, err
	}
	info.Version, info.VersionSchema, info.Release = r.PackageVersion(), "none", packageRelease
	info.Prerelease = ""
	info.Maintainer, info.Vendor, info.Homepage, info.License = maintainer, "zrlmpid", project, "Apache-2.0"
	info.Priority, info.MTime = "optional", r.Time
	info.RPM.BuildHost = "localhost"
	add := func(source, folder, kind string) {
		info.Contents = append(info.Contents, &files.Content{Source: source, Type: kind,
			Destination: path.Join("/usr/share", folder, name, filepath.Base(source))})
	}
	add("NOTICE", "doc", files.TypeFile)
	if format == "deb" {
		add(debianChangelog, "doc", files.TypeFile)
		add(copyrightFile, "doc", files.TypeFile)
	} else {
		info.Changelog = rpmChangelog
		add("LICENSE", "licenses", files.TypeRPMLicense)
		add(copyrightFile, "licenses", files.TypeRPMLicense)
	}
	for _, content := range info.Contents {
		if content.FileInfo == nil {
			content.FileInfo = &files.ContentFileInfo{}
		}
		if content.FileInfo.Mode == 0 {
			content.FileInfo.Mode = 0o644 // regardless of the umask
		}
		content.FileInfo.MTime = r.Time
	}
	return info, nil
}
