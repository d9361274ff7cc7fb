package dist

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// program is a command of the repository.
type program struct{ name, module, path string }

var (
	zrlmpid  = program{"zrlmpid", ".", "./cmd/zrlmpid"}
	zrlctl   = program{"zrlctl", ".", "./cmd/zrlctl"}
	zrlbench = program{"zrlbench", "lab", "./cmd/zrlbench"}
)

// platform is an operating system with an architecture, and the programs that its archive contains.
type platform struct {
	os, arch string
	programs []program
}

// Platforms lists the platforms of a release. The daemon runs on Linux only, and zrlctl reads recordings anywhere.
var Platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// platforms returns the platforms with their programs.
func (r *Release) platforms() []platform {
	var all []platform
	for _, name := range r.Platforms {
		system, arch, _ := strings.Cut(name, "/")
		p := platform{system, arch, []program{zrlctl}}
		if system == "linux" {
			p.programs = []program{zrlmpid, zrlctl, zrlbench}
		}
		all = append(all, p)
	}
	return all
}

// architectures returns the architectures of Linux.
func (r *Release) architectures() []string {
	var all []string
	for _, p := range r.platforms() {
		if p.os == "linux" {
			all = append(all, p.arch)
		}
	}
	return all
}

// env returns the environment of the Go tool for a platform.
func (p platform) env() []string {
	return []string{"CGO_ENABLED=0", "GOOS=" + p.os, "GOARCH=" + p.arch}
}

// folder returns the folder of the programs that were built for the platform.
func (p platform) folder() string { return filepath.Join(buildFolder, p.os+"_"+p.arch) }

// file returns the path of a program that was built for the platform.
func (p platform) file(name string) string {
	if p.os == "windows" {
		name += ".exe"
	}
	return filepath.Join(p.folder(), name)
}

// files returns the paths of the platform's programs.
func (p platform) files() []string {
	var all []string
	for _, each := range p.programs {
		all = append(all, p.file(each.name))
	}
	return all
}

// linkFlags returns the linker's flags. Without symbols, stack traces are complete, and programs are a third smaller.
func (r *Release) linkFlags() string {
	return "-s -w -X github.com/zrlmpi/zrlmpid/internal/version.version=" + r.Version
}

// buildPrograms builds the programs of a platform.
func (r *Release) buildPrograms(ctx context.Context, p platform) error {
	for _, each := range p.programs {
		into, err := filepath.Abs(p.file(each.name))
		if err != nil {
			return err
		}
		if _, err := run(ctx, p.env(), "go", "-C", each.module, "build", "-trimpath", "-ldflags", r.linkFlags(),
			"-o", into, each.path); err != nil {
			return err
		}
	}
	return nil
}

// crossTriplets maps architectures to the prefixes of Debian's cross compilers.
var crossTriplets = map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}

// libraryEnv returns the environment of C and Fortran builds for an architecture. It returns an error if a compiler is
// not installed.
func libraryEnv(arch string) ([]string, error) {
	c, fortran := cmp.Or(os.Getenv("CC"), "cc"), cmp.Or(os.Getenv("FC"), "gfortran")
	if arch != runtime.GOARCH {
		c, fortran = crossTriplets[arch]+"-gcc", crossTriplets[arch]+"-gfortran"
	}
	for _, compiler := range []string{c, fortran} {
		if _, err := exec.LookPath(compiler); err != nil {
			return nil, fmt.Errorf("the C library for %s: %w", arch, err)
		}
	}
	return []string{"CGO_ENABLED=1", "GOOS=linux", "GOARCH=" + arch, "CC=" + c, "FC=" + fortran}, nil
}

// LibraryFolder returns the folder of the C library for an architecture.
func LibraryFolder(arch string) string { return filepath.Join(buildFolder, "library_"+arch) }

// BuildLibrary builds the C library for an architecture. The error wraps exec.ErrNotFound if a compiler is missing.
func (r *Release) BuildLibrary(ctx context.Context, arch string) error {
	env, err := libraryEnv(arch)
	if err != nil {
		return err
	}
	env = append(env, "VERSION="+r.Version, "LDFLAGS="+r.linkFlags(), "CFLAGS=-s", "PREFIX=/usr/lib/zrlmpi")
	_, err = run(ctx, env, "lib/build.sh", LibraryFolder(arch))
	return err
}
