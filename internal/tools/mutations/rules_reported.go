package main

var (
	ownRules   = test{"its own test", []string{"./daemon/standin/cosim", "-run", "Rules|Independent"}}
	ownExec    = test{"its own test", []string{"./daemon/standin", "-run", "TestExec"}}
	ownSyntax  = test{"its own test", []string{"./config", "-run", "TestSyntax"}}
	ownHello   = test{"its own test", []string{"./daemon/attach", "-run", "TestHostileHello$"}}
	ownStructs = test{"its own test", []string{"./mpi", "-run", "TestStructType$"}}
	ownFailed  = test{"its own test", []string{"./mpe", "-run", "TestPeerFailed$"}}
	ownNumbers = test{"its own test", []string{"./lib/capi", "-run", "TestInvalidNumbers$"}}
	lostTails  = test{"the tests of lost datagrams", []string{"./handshake", "-short"}}
	firstOnes  = test{"its own test", []string{"./handshake", "-run", "TestFirstDeadline"}}
	addresses  = test{"its own test", []string{"./diagnosis/doctor"}}
)

// Rules that follow from reports by users of other MPIs, of packet tools and of FPGA tools (docs/data/cases.csv).
func init() {
	mutations = append(mutations, []mutation{
		{"roles: a valid that waits for ready is a finding, and ends no exchange", "daemon/standin/cosim/rules.go",
			"\tif r.Rule == RuleIndependent {\n", "\tif false {\n", []test{ownRules}},
		{"roles: bits that changed are named by their signal", "daemon/standin/cosim/rules.go",
			"\tcase record.Keep != 0:\n\t\treturn \"tkeep\"\n", "", []test{ownRules}},
		{"kernels: a text on standard output is named", "daemon/standin/mpe_interface.go",
			"if text := c.printable(); text != \"\" {", "if text := c.printable(); false {", []test{ownExec}},
		{"configuration: a fault of the syntax has its own line", "internal/strictyaml/syntax.go",
			"(f.noticedLate || !isValid(text, f.line+1)) {", "false {", []test{ownSyntax}},
		{"attach: another byte order is named", "mpe/attach/wire/message.go",
			"\tcase bits.ReverseBytes32(Version):\n", "\tcase 0:\n", []test{ownHello}},
		{"mpi: a blank field of a struct is a gap", "mpi/typed.go", "if f.Name == \"_\" {", "if false {",
			[]test{ownStructs}},
		{"stand-ins: a kernel that failed ends the next receive for its answer", "mpe/core/core.go",
			"\t\tp.kernelErr = err\n", "\t\t_ = err\n", []test{ownFailed}},
		{"C library: a number that is no rank is named as it was given", "mpi/numbers_text.go",
			"if n <= outOfRangeOffset/2 {", "if false {", []test{ownNumbers}},
		{"D8: the rest of a message that lost a datagram is a gap", "handshake/recv.go",
			"if p.cfg.Shape.ImpliesGap(recv.remaining(), int64(len(b))) {", "if false {", []test{lostTails}},
		{"T6: a peer that was never heard has a separate deadline", "handshake/send.go",
			"t.FirstDeadline > 0 && !p.counts.any()", "t.FirstDeadline > 0", []test{firstOnes}},
		{"doctor: two stations with one address", "diagnosis/doctor/network.go",
			"case !in.isLocalAddress(claim.Addr) && len(claim.Stations) > 1:", "case false:", []test{addresses}},
	}...)
}
