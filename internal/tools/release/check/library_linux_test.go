package check

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/tools/release/dist"
)

// TestLibraryPackages builds and installs the packages of the C library, and uses them to compile and run a program. It
// also checks that no file is in both these packages and Debian's MPICH.
func TestLibraryPackages(t *testing.T) {
	needs(t, "the packages of the C library", "gfortran", "gfortran")
	needs(t, "the packages of the C library", "dpkg", "dpkg")
	r := newRelease(t, "1.2.3")
	if err := r.BuildLibrary(t.Context(), runtime.GOARCH); err != nil {
		t.Fatal(err)
	}
	folder := dist.LibraryFolder(runtime.GOARCH)
	made := func(name, format string) string {
		t.Helper()
		file, err := r.MakePackage(name, format, runtime.GOARCH, folder, nil)
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	library, dev := made("libzrlmpi", "deb"), made("libzrlmpi-dev", "deb")
	hasCopyright(t, filepath.Join(folder, "lib/libzrlmpi.so"))

	root := debianRoot(t)
	dpkg(t, root, "--install", library, dev)
	installed := map[string]bool{}
	for _, name := range []string{"libzrlmpi", "libzrlmpi-dev"} {
		for file := range strings.Lines(dpkg(t, root, "--listfiles", name)) {
			file = strings.TrimSpace(file)
			if info, err := os.Lstat(filepath.Join(root, file)); err == nil && info.IsDir() {
				continue
			}
			installed[file] = true
			switch {
			case strings.HasPrefix(file, "/usr/lib/zrlmpi/"), strings.HasPrefix(file, "/usr/bin/zrlmpi"),
				strings.HasPrefix(file, "/usr/share/man/"),
				strings.HasPrefix(file, "/usr/share/doc/libzrlmpi"), file == "/usr/share/lintian/overrides/"+name,
				strings.HasPrefix(file, "/usr/share/pkgconfig/zrlmpi"):
			default:
				t.Errorf("%s has %s, outside of its folders", name, file)
			}
		}
	}
	for file := range installed { // every build folder yields the same bytes: make reproducible
		if data, err := os.ReadFile(filepath.Join(root, file)); err == nil && bytes.Contains(data, []byte(repository)) {
			t.Errorf("%s names the folder in which it was built", file)
		}
	}
	for _, file := range []string{"/usr/lib/zrlmpi/lib/libmpich.so.12", "/usr/lib/zrlmpi/include/mpich/mpi_f08.mod",
		"/usr/share/man/man7/zrlmpi.7.gz", "/usr/share/man/man1/zrlmpifort.1.gz"} {
		if !installed[file] {
			t.Errorf("%s is missing", file)
		}
	}
	needs(t, "the packages next to MPICH", "mpicc.mpich", "mpich libmpich-dev")
	for _, name := range []string{"mpich", "libmpich-dev", "libmpich12"} {
		out, err := exec.Command("dpkg", "--listfiles", name).Output()
		if err != nil {
			t.Fatalf("dpkg --listfiles %s: %v", name, err)
		}
		for file := range strings.Lines(string(out)) {
			if file = strings.TrimSpace(file); installed[file] {
				t.Errorf("%s is also %s's", file, name)
			}
		}
	}

	bin := filepath.Join(root, "usr/bin")
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Env = append(os.Environ(), "PKG_CONFIG_PATH="+filepath.Join(root, "usr/share/pkgconfig"),
			"PKG_CONFIG_SYSROOT_DIR="+root)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
		return string(out)
	}
	for compiler, x := range map[string][2]string{
		"zrlmpicc":   {"ring.c", "mean of a round"},
		"zrlmpifort": {"pi.f90", "pi is 3.1415926536, by 2 ranks"},
	} {
		program := filepath.Join(t.TempDir(), "program")
		run(filepath.Join(bin, compiler), "-o", program, from("examples/c/"+x[0]))
		if out := run(filepath.Join(programs, "zrlctl"), "run", "-n", "2", program); !strings.Contains(out, x[1]) {
			t.Errorf("%s: %s", x[0], out)
		}
	}
	needs(t, "the files for pkg-config", "pkg-config", "pkgconf")
	for module, want := range map[string]string{"zrlmpi": "-lmpi_abi", "zrlmpi-mpich": "-lmpi",
		"zrlmpi-fortran": "-lmpifort -lmpi", "zrlmpi-upstream": "-lzrlmpi_upstream"} {
		if out := run("pkg-config", "--cflags", "--libs", module); !strings.Contains(out, want) ||
			!strings.Contains(out, root+"/usr/lib/zrlmpi/include/") {
			t.Errorf("%s: %s", module, out)
		}
	}

	needs(t, "the RPM packages of the C library", "rpm", "rpm")
	for _, file := range []string{made("libzrlmpi", "rpm"), made("libzrlmpi-dev", "rpm")} {
		if out := run("rpm", "-qpl", file); !strings.Contains(out, "/usr/lib/zrlmpi/lib/libmpi.so") {
			t.Errorf("%s: %s", file, out)
		}
	}
}
