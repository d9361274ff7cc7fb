package cosim_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/loopback"

	"github.com/zrlmpi/zrlmpid/deploy/cosim"
)

// sizes are message lengths, in words, that divide into datagrams and lines in different ways.
var sizes = []int{1, 2, 3, 345, 346, 347, 348, 349, 1000, 5001}

// Changes that make the roles stall at random, as if they waited for memory.
var (
	verilogGaps = []change{
		{"module role (", brokenVerilog + "module echo ("},
		{"  reg [63:0] message[0:LINES-1];", "  reg [15:0] lfsr = 16'hace1;\n  always @(posedge clk) lfsr <= " +
			"{lfsr[14:0], lfsr[15] ^ lfsr[13] ^ lfsr[12] ^ lfsr[10]};\n  reg [63:0] message[0:LINES-1];"},
		{"siMPI_data_tready = state == RECV;", "siMPI_data_tready = state == RECV && lfsr[0];"},
		{"        if (siMPI_data_tvalid) begin", "        if (siMPI_data_tvalid && siMPI_data_tready) begin"},
		{"          end else if (!soMPI_data_tvalid || taken) begin", "          end else if (taken && lfsr[3]) " +
			"soMPI_data_tvalid <= 0;\n          else if (!soMPI_data_tvalid && lfsr[5] || taken) begin"},
	}
	vhdlGaps = []change{
		{"  signal state : phase;", "  signal state : phase;\n  signal lfsr : std_logic_vector(15 downto 0) := " +
			"x\"ace1\";\n  signal ready : std_logic;"},
		{"  siMPI_data_tready <= '1' when state = receive else '0';", "  lfsr <= lfsr(14 downto 0) & (lfsr(15) xor " +
			"lfsr(13) xor lfsr(12) xor lfsr(10)) when rising_edge(clk);\n" +
			"  ready <= '1' when state = receive and lfsr(0) = '1' else '0';\n  siMPI_data_tready <= ready;"},
		{"            if siMPI_data_tvalid = '1' then", "            if siMPI_data_tvalid = '1' and ready = '1' then"},
		{"            elsif out_valid = '0' or soMPI_data_tready = '1' then",
			"            elsif out_valid = '1' and soMPI_data_tready = '1' and lfsr(3) = '1' then\n              " +
				"out_valid <= '0';\n" +
				"            elsif (out_valid = '0' and lfsr(5) = '1') or soMPI_data_tready = '1' then"},
	}
	// Changes that make a role forward messages from the rank below to the rank above.
	verilogRing = []change{
		{"state == CALL_RECV ? {32'd0, ", "state == CALL_RECV ? {rank - 32'd1, "},
		{": {32'd0, words", ": {(rank + 32'd1) % size, words"},
	}
	vhdlRing = []change{
		{"call(count, mpi_call : natural)", "call(other : unsigned(31 downto 0); count, mpi_call : natural)"},
		{"std_logic_vector(to_unsigned(0, 32))", "std_logic_vector(other)"},
		{"call(2 * LINES, 1 + DATATYPE)", "call(unsigned(rank) - 1, 2 * LINES, 1 + DATATYPE)"},
		{"call(words, DATATYPE)", "call((unsigned(rank) + 1) mod unsigned(size), words, DATATYPE)"},
	}
)

// source lists the changes for a role in one language.
type source struct {
	gaps, ring []change
	float      change // FLOAT in place of INT, or:
	floats     string // the argument with the same effect
}

var sources = map[string]source{
	"verilog": {gaps: verilogGaps, ring: verilogRing, floats: " +float"},
	"vhdl": {gaps: vhdlGaps, ring: vhdlRing,
		float: change{"constant DATATYPE : natural := 0;", "constant DATATYPE : natural := 2;"}},
	"hls": {float: change{"DATATYPE = 0;", "DATATYPE = 2;"}},
}

// rtl lists the languages of circuits.
var rtl = []string{"verilog", "vhdl"}

// simulators builds a role with random stalls and further changes, and returns its simulators by datatype.
func (s source) simulators(t *testing.T, language string, changes ...change) map[string]string {
	t.Helper()
	changes = append(slices.Clone(s.gaps), changes...)
	ints := build(t, language, changes...)
	floats := ints + s.floats
	if s.floats == "" {
		floats = build(t, language, append(changes, s.float)...)
	}
	return map[string]string{"int": ints, "float": floats}
}

// TestRoles exchanges messages of all lengths between a host and roles, with random stalls on both sides.
func TestRoles(t *testing.T) {
	for language, source := range sources {
		t.Run(language, func(t *testing.T) {
			for datatype, simulator := range source.simulators(t, language) {
				c := start(t, simulator, "stall_percent=30 seed=7", "")
				for _, words := range sizes {
					c.ping(t, words, 2, datatype)
				}
			}
		})
	}
}

// lossy configures a stand-in with a lossy network. It disables the quirks of the FPGA, because messages of several
// datagrams get through only if they are retransmitted whole.
const lossy = ", quirks: off, link: {on_partial: retransmit}, faults: {seed: 3, rules: [loss 1%]}"

// TestRolesSurviveLoss exchanges messages between a host and roles through a lossy network.
func TestRolesSurviveLoss(t *testing.T) {
	for _, language := range rtl {
		t.Run(language, func(t *testing.T) {
			for datatype, simulator := range sources[language].simulators(t, language) {
				c := start(t, simulator, "stall_percent=20", lossy)
				for _, words := range sizes {
					c.ping(t, words, 5, datatype)
				}
				if c.retransmissions(t) == 0 {
					t.Error("nothing was lost")
				}
			}
		})
	}
}

// TestRing passes a message from the host through a role and a software stand-in back to the host, also through a lossy
// network.
func TestRing(t *testing.T) {
	for _, language := range rtl {
		for name, more := range map[string]string{"sound": "", "lossy": lossy} {
			t.Run(language+" "+name, func(t *testing.T) {
				source := sources[language]
				for datatype, simulator := range source.simulators(t, language, source.ring...) {
					c := start(t, simulator, "stall_percent=30 seed=7", more, "run: standin, kernel: ring"+more)
					for range 3 {
						for _, words := range sizes {
							c.around(t, words, datatype)
						}
					}
					if more != "" && c.retransmissions(t) == 0 {
						t.Error("nothing was lost")
					}
				}
			})
		}
	}
}

// TestUpstreamProgramMeetsRoles sends messages of all lengths from upstream's program on its CPU library to roles, and
// verifies the echoes. The library marks all words as integers on the wire, even for MPI_FLOAT, so the roles receive
// INT.
func TestUpstreamProgramMeetsRoles(t *testing.T) {
	program := upstreamProgram(t)
	for _, language := range rtl {
		t.Run(language, func(t *testing.T) {
			c := startKernel(t, "peer: cpu",
				role(sources[language].simulators(t, language)["int"], "stall_percent=30 seed=7", ""))
			for _, datatype := range []string{"", "f"} {
				for _, words := range sizes {
					c.runUpstream(t, program, strconv.Itoa(words)+datatype)
				}
			}
		})
	}
}

// TestProject checks that the project written by zrlctl cosim new produces its first echo without an edit, and that its
// role works without zrlmpid.
func TestProject(t *testing.T) {
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, "github.com/zrlmpi/zrlmpid/cmd/zrlmpid",
		"github.com/zrlmpi/zrlmpid/cmd/zrlctl").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, language := range []string{"vhdl", "vhdl-mpe"} {
		t.Run(language, func(t *testing.T) { testProject(t, bin, language) })
	}
}

func testProject(t *testing.T, bin, language string) {
	build(t, language) // or skip the test if a tool is missing
	dir := filepath.Join(t.TempDir(), "my role")
	if out, err := exec.Command(filepath.Join(bin, "zrlctl"), "cosim", "new", "--language", language,
		dir).CombinedOutput(); err != nil || !strings.Contains(string(out), "role.vhdl") {
		t.Fatalf("%v\n%s", err, out)
	}
	// Other tests use 127.0.0.1 at the same time.
	config := filepath.Join(dir, "cluster.yaml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	own := strings.ReplaceAll(string(text), " 127.0.0.", " "+loopback.Network(t))
	if err := os.WriteFile(config, []byte(own), 0o666); err != nil || own == string(text) {
		t.Fatalf("%v, %s", err, text)
	}
	if out, err := exec.Command("make", "-C", dir).CombinedOutput(); err != nil ||
		strings.Count(string(out), " 3/3") != 7 {
		t.Errorf("make: %v\n%s", err, out)
	}
	if language != "vhdl" {
		return
	}
	if out, err := exec.Command("make", "-C", dir, "alone").CombinedOutput(); err != nil ||
		!strings.Contains(string(out), "1000 messages of 1000 words") {
		t.Errorf("make alone: %v\n%s", err, out)
	}
	if _, err := cosim.Write(dir, "vhdl", bin); err == nil {
		t.Error("files that exist are overwritten")
	}
}
