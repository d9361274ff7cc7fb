// Package diagnose measures how often the diagnosis of a hang is right. Its tests build clusters in simulated time,
// of hosts, stand-ins, and the models of a deployed FPGA and of upstream's CPU library, inject one known cause of a
// hang, ask at every vantage, and compare the answers with the cause. `make diagnose` writes the results
// to docs/reliability.md and docs/data.
//
// The injectors know nothing of package diagnosis, and the evidence by which causes count as indistinguishable
// is made of packets, times and process states alone.
package diagnose
