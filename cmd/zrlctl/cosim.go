package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/deploy/cosim"
)

func (a *app) cosimCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "cosim", Short: "Run the role of an FPGA in simulation",
		Long: `Run the role of an FPGA in simulation, as a rank. The role is Verilog, VHDL or HLS C++; it runs
behind a stand-in with kernel "rtl:SIMULATOR", or "rtl-net:SIMULATOR" if it contains its own
Message Passing Engine (MPE).`,
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.cosimNewCommand(), a.cosimWavesCommand())
	return cmd
}

func (a *app) cosimNewCommand() *cobra.Command {
	var language string
	cmd := &cobra.Command{
		Use: "new DIR", Short: "Create a project for a role in simulation", Args: argCount(1, 1),
		Long: `Create a project in folder DIR: a role that sends each message back, the code that connects
its simulator to zrlmpid, a Makefile, a configuration and a README. "make" in the folder
builds the simulator and sends the role its first messages. The language verilog needs
verilator, vhdl needs ghdl with LLVM or GCC as its back end (Debian: ghdl-llvm), and hls
needs a C++ compiler. The roles of verilog-mpe and vhdl-mpe contain their own Message
Passing Engine and exchange datagrams. Existing files are not changed.`,
		Example: `  zrlctl cosim new --language verilog myrole
  make -C myrole`,
		RunE: operation(func(cmd *cobra.Command, args []string) error {
			if err := requireFlags(cmd, "language"); err != nil {
				return err
			}
			if !slices.Contains(cosim.Languages, language) {
				return usageErrorf("--language %s: must be one of %s", language, strings.Join(cosim.Languages, ", "))
			}
			self, err := os.Executable()
			if err != nil {
				return err
			}
			files, err := cosim.Write(args[0], language, filepath.Dir(self))
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if a.json {
				return json.NewEncoder(out).Encode(struct {
					Files []string `json:"files"`
				}{files})
			}
			for _, f := range files {
				fmt.Fprintln(out, f)
			}
			fmt.Fprintf(out, "next: make -C %s\n", args[0])
			return nil
		}),
	}
	cmd.Flags().StringVar(&language, "language", "", "language of the role: "+strings.Join(cosim.Languages, ", "))
	return cmd
}
