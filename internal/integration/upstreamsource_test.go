package integration_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// sourceEnv names a checkout of upstream's repository, including its submodule.
const sourceEnv = "ZRLMPI_UPSTREAM_SOURCE"

// upstreamTools is the path of upstream's compiler in its repository.
const upstreamTools = "TOOLS/ZRLMPI.CC"

// edit is a change to a file of upstream's. The old text must occur exactly once.
type edit struct{ file, old, new string }

// repairs lists the edits without which nothing works.
var repairs = []edit{
	// The compiler: the variable is no longer defined.
	{upstreamTools + "/zrlmpi_cc1.py", "    os.popen(patch_cmd).read()\n", ""},
	// k-means: the compiler removes these arguments, which the CPU library reads.
	{upstreamTools + "/examples/kmeans.cpp", "MPI_Init(NULL, NULL);", "MPI_Init(&argc, &argv);"},
	// k-means: two of three counts start with uninitialized memory.
	{upstreamTools + "/examples/kmeans.cpp", "      counts[i] = 0;", "      counts[i/VECTOR_DIM] = 0;"},
	// Jacobi with collective calls: the compiler recognizes only int main, and omits everything before main from the
	// program for FPGAs.
	{upstreamTools + "/examples/jacobi2d-col.cpp", "void main( int argc", "int main( int argc"},
	{upstreamTools + "/examples/jacobi2d-col.hpp", "void main( int argc", "int main( int argc"},
}

// wishes are edits that make programs print more, for a smaller problem.
var wishes = []edit{
	{upstreamTools + "/examples/kmeans.hpp", "#define NR_VECTORS 1000000",
		fmt.Sprint("#define NR_VECTORS ", kmeansVectors)},
	{upstreamTools + "/examples/kmeans.hpp", "#define K_STATIC 512", fmt.Sprint("#define K_STATIC ", kmeansClusters)},
	{upstreamTools + "/examples/kmeans.cpp", `    printf("Final counts:\n");`, `
		printf("Centroids:\n");
		print_centroids(centroids, k);
		printf("Labels:\n");
		for (int i = 0; i < NR_VECTORS; i++) {
			printf("%d\n", all_labels[i]);
		}
		printf("Final counts:\n");`},
	{upstreamTools + "/examples/jacobi2d.cpp", `    printf("\nDone.\n");`, `
		printf("\nDone.\n");
		print_array((const int*) &grid[1][0], DIM, DIM);`},
}

// upstreamSource is a copy of the checkout in which programs are built.
type upstreamSource struct {
	*testing.T
	dir string
}

// newUpstreamSource copies the checkout. The user must provide it, because no package contains it and the tests
// download nothing.
func newUpstreamSource(t *testing.T) upstreamSource {
	t.Helper()
	checkout := os.Getenv(sourceEnv)
	if checkout == "" {
		t.Skipf("NOT TESTED against upstream's compiler and examples: set %s to a checkout of "+
			"github.com/cloudFPGA/ZRLMPI with its submodule", sourceEnv)
	}
	s := upstreamSource{t, t.TempDir()}
	for _, part := range []string{upstreamTools, "LIB", "templates"} {
		if err := os.CopyFS(filepath.Join(s.dir, part), os.DirFS(filepath.Join(checkout, part))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(s.path(upstreamTools, "pycparser/pycparser")); err != nil {
		t.Fatalf("%v: the checkout lacks its submodule: git submodule update --init", err)
	}
	for _, e := range append(repairs, wishes...) {
		s.apply(e)
	}
	s.run("", "make", "-C", s.path(upstreamTools, "unifdef"))
	return s
}

func (s upstreamSource) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

func (s upstreamSource) apply(e edit) {
	s.Helper()
	text, err := os.ReadFile(s.path(e.file))
	if err != nil {
		s.Fatal(err)
	}
	if n := strings.Count(string(text), e.old); n != 1 {
		s.Fatalf("%s: %q stands in it %d times: it is another version than that which this test knows", e.file, e.old,
			n)
	}
	if err := os.WriteFile(s.path(e.file), []byte(strings.Replace(string(text), e.old, e.new, 1)), 0o600); err != nil {
		s.Fatal(err)
	}
}

func (s upstreamSource) run(dir, name string, args ...string) {
	s.Helper()
	cmd := exec.CommandContext(s.Context(), name, args...)
	cmd.Dir = dir
	tools := s.path(upstreamTools)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+tools+":"+filepath.Join(tools, "pycparser"))
	if out, err := cmd.CombinedOutput(); err != nil {
		s.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}

// programs are the programs that upstream's compiler generates from an example: for CPU ranks, with upstream's library,
// and for FPGAs, for kernel exec.
type programs struct{ host, role, dir string }

// build compiles an example for rank 0 and the given number of FPGAs.
func (s upstreamSource) build(example string, fpgas, comOpt int) programs {
	s.Helper()
	out := s.TempDir()
	to := func(name string) string { return filepath.Join(out, name) }
	cluster := fmt.Sprintf(`{"nodes": {"cpu": [0], "fpga": %s}, "config": {"com_opt": %d, "mem_opt": 0}}`,
		list(upTo(1, 1+fpgas)), comOpt)
	if err := os.WriteFile(to("cluster.json"), []byte(cluster), 0o600); err != nil {
		s.Fatal(err)
	}
	s.run(s.path(upstreamTools, "examples"), "python3", s.path(upstreamTools, "zrlmpi_cc1.py"),
		example+".cpp", example+".hpp", to("app_hw.cpp"), to("app_hw.hpp"), to("hw.tcl"), to("app_sw.cpp"),
		to("app_sw.hpp"),
		to("cluster.json"), "cFp.json", s.path("LIB/HW/hls/mpi_wrapperv2/src/ZRLMPI_temp.cpp"), to("wrapper.cpp"),
		s.path("templates/Role_template.vhdl"), to("Role.vhdl"))
	role, err := filepath.Abs("testdata/role")
	if err != nil {
		s.Fatal(err)
	}
	p := programs{host: to("host"), role: to("role"), dir: out}
	library := s.path("LIB/SW")
	common := filepath.Join(library, "zrlmpi_common.cpp")
	// Without -O, like upstream: main functions that lack a return statement rely on it.
	compile := []string{"-std=c++11", "-g", "-w", "-pthread", "-D_XOPEN_SOURCE=700"}
	s.run(out, "g++", append(compile, "-DZRLMPI_SW_ONLY", "-I", library, "-o", p.host,
		"app_sw.cpp", filepath.Join(library, "ZRLMPI.cpp"), common)...)
	s.run(out, "g++", append(compile, "-I", role, "-I", library, "-I", out, "-o", p.role,
		"app_hw.cpp", filepath.Join(role, "role.cpp"), common)...)
	return p
}
