package cosim_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/deploy/cosim"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// sizes are lengths at which messages are divided into datagrams and lines in different ways.
var sizes = []int{1, 2, 3, 345, 346, 347, 348, 349, 1000, 5001}

// The changes that make the roles wait at random, as they would for a memory.
var (
	verilogGaps = []change{
		{"  reg [63:0] message[0:LINES-1];", "  reg [15:0] lfsr = 16'hace1;\n  always @(posedge clk) lfsr <= {lfsr[14:0], lfsr[15] ^ lfsr[13] ^ lfsr[12] ^ lfsr[10]};\n  reg [63:0] message[0:LINES-1];"},
		{"siMPI_data_tready = state == RECV;", "siMPI_data_tready = state == RECV && lfsr[0];"},
		{"        if (siMPI_data_tvalid) begin", "        if (siMPI_data_tvalid && siMPI_data_tready) begin"},
		{"          end else if (!soMPI_data_tvalid || taken) begin", "          end else if (taken && lfsr[3]) soMPI_data_tvalid <= 0;\n          else if (!soMPI_data_tvalid && lfsr[5] || taken) begin"},
	}
	vhdlGaps = []change{
		{"  signal state : phase;", "  signal state : phase;\n  signal lfsr : std_logic_vector(15 downto 0) := x\"ace1\";\n  signal ready : std_logic;"},
		{"  siMPI_data_tready <= '1' when state = receive else '0';", "  lfsr <= lfsr(14 downto 0) & (lfsr(15) xor lfsr(13) xor lfsr(12) xor lfsr(10)) when rising_edge(clk);\n" +
			"  ready <= '1' when state = receive and lfsr(0) = '1' else '0';\n  siMPI_data_tready <= ready;"},
		{"            if siMPI_data_tvalid = '1' then", "            if siMPI_data_tvalid = '1' and ready = '1' then"},
		{"            elsif out_valid = '0' or soMPI_data_tready = '1' then", "            elsif out_valid = '1' and soMPI_data_tready = '1' and lfsr(3) = '1' then\n              out_valid <= '0';\n" +
			"            elsif (out_valid = '0' and lfsr(5) = '1') or soMPI_data_tready = '1' then"},
	}
	vhdlFloat = change{"constant DATATYPE : natural := 0;", "constant DATATYPE : natural := 2;"}
	hlsFloat  = change{"DATATYPE = 0;", "DATATYPE = 2;"}
)

// A host exchanges messages of all lengths with roles that make each other wait at random.
func TestRoles(t *testing.T) {
	for language, tt := range map[string]struct {
		changes []change
		float   change // or:
		floats  string // an argument
	}{
		"verilog": {changes: verilogGaps, floats: " +float"},
		"vhdl":    {changes: vhdlGaps, float: vhdlFloat},
		"hls":     {float: hlsFloat},
	} {
		t.Run(language, func(t *testing.T) {
			ints := build(t, language, tt.changes...)
			floats := ints + tt.floats
			if tt.floats == "" {
				floats = build(t, language, append([]change{tt.float}, tt.changes...)...)
			}
			for datatype, simulator := range map[string]string{"int": ints, "float": floats} {
				c := start(t, simulator, "stall_percent=30 seed=7", "")
				for _, words := range sizes {
					c.ping(t, words, 2, datatype)
				}
			}
		})
	}
}

// The same through a network that loses packets. Only a rank that sends whole messages again
// gets those of several datagrams through, so the stand-in has none of the FPGA's flaws.
func TestRolesSurviveLoss(t *testing.T) {
	for _, language := range []string{"verilog", "vhdl"} {
		t.Run(language, func(t *testing.T) {
			changes := vhdlGaps
			if language == "verilog" {
				changes = verilogGaps
			}
			c := start(t, build(t, language, changes...), "stall_percent=20",
				", quirks: off, link: {on_partial: retransmit}, faults: {seed: 3, rules: [loss 1%]}")
			for _, words := range sizes {
				c.ping(t, words, 5, "int")
			}
			s, err := c.Client.Status(within(t, time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			retransmissions := uint64(0)
			for _, r := range s.Ranks {
				for _, p := range r.Engine.Peers {
					retransmissions += p.Retransmissions
				}
			}
			if retransmissions == 0 {
				t.Error("nothing was lost")
			}
		})
	}
}

// A message goes from the host through a role and a software stand-in, and back to the host.
func TestRing(t *testing.T) {
	ring := []change{
		{"call(count, mpi_call : natural)", "call(other : unsigned(31 downto 0); count, mpi_call : natural)"},
		{"std_logic_vector(to_unsigned(0, 32))", "std_logic_vector(other)"},
		{"call(2 * LINES, 1 + DATATYPE)", "call(unsigned(rank) - 1, 2 * LINES, 1 + DATATYPE)"},
		{"call(words, DATATYPE)", "call((unsigned(rank) + 1) mod unsigned(size), words, DATATYPE)"},
	}
	c := start(t, build(t, "vhdl", ring...), "", "", "run: standin, kernel: ring")
	for _, words := range sizes {
		message := make([]byte, 0, 4*words)
		for i := range words {
			message = binary.LittleEndian.AppendUint32(message, uint32(words<<16+i))
		}
		ctx := within(t, time.Minute)
		if _, err := c.Client.Send(ctx, control.SendRequest{From: 0, To: 1, Datatype: protocol.Int, Timeout: time.Minute}, bytes.NewReader(message)); err != nil {
			t.Fatalf("%d words: %v\n%s", words, err, c.said())
		}
		_, got, err := c.Client.Recv(ctx, control.RecvRequest{From: 2, To: 0, Datatype: protocol.Int, Words: words, Timeout: time.Minute})
		if err != nil || !bytes.Equal(got, message) {
			t.Fatalf("%d words came back as %d, %v", words, len(got)/4, err)
		}
	}
}

// What zrlctl cosim new writes makes the first echo without an edit, and its role works alone.
func TestProject(t *testing.T) {
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, "github.com/zrlmpi/zrlmpid/cmd/zrlmpid", "github.com/zrlmpi/zrlmpid/cmd/zrlctl").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, language := range []string{"vhdl", "vhdl-mpe"} {
		t.Run(language, func(t *testing.T) { testProject(t, bin, language) })
	}
}

func testProject(t *testing.T, bin, language string) {
	build(t, language) // or says what is missing
	dir := filepath.Join(t.TempDir(), "my role")
	if out, err := exec.Command(filepath.Join(bin, "zrlctl"), "cosim", "new", "--language", language, dir).CombinedOutput(); err != nil || !strings.Contains(string(out), "role.vhdl") {
		t.Fatalf("%v\n%s", err, out)
	}
	// Other tests have 127.0.0.1 at the same time.
	config := filepath.Join(dir, "cluster.yaml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	own := strings.ReplaceAll(string(text), " 127.0.0.", fmt.Sprintf(" 127.%d.%d.", 200+rand.IntN(50), rand.IntN(250)))
	if err := os.WriteFile(config, []byte(own), 0o666); err != nil || own == string(text) {
		t.Fatalf("%v, %s", err, text)
	}
	if out, err := exec.Command("make", "-C", dir).CombinedOutput(); err != nil || strings.Count(string(out), " 3/3") != 7 {
		t.Errorf("make: %v\n%s", err, out)
	}
	if language != "vhdl" {
		return
	}
	if out, err := exec.Command("make", "-C", dir, "alone").CombinedOutput(); err != nil || !strings.Contains(string(out), "1000 messages of 1000 words") {
		t.Errorf("make alone: %v\n%s", err, out)
	}
	if _, err := cosim.Write(dir, "vhdl", bin); err == nil {
		t.Error("files that exist are overwritten")
	}
}
