// Package cosim tests roles in simulation: Verilog under Verilator, VHDL under GHDL and HLS C++,
// as `zrlctl cosim new` writes them, and with bugs.
package cosim
