package main

var (
	calls      = test{"the tests of the calls of C", []string{"./lib/capi", "-timeout", "1m"}}
	mismatches = test{"the tests of shared buffers", []string{"./mpe/collective", "-run", "Shared"}}
	libraryRun = test{"programs in C and Fortran", []string{"./lib", "-run", "TestLibrary$|TestLibraryFortran"}}
)

// Rules about the C library on which programs written for other MPIs depend.
func init() {
	mutations = append(mutations, []mutation{
		{"C library: the datatype of a message is committed", "lib/capi/args.go", "!t.committed", "false",
			[]test{calls}},
		{"C library: no elements may have MPI_DATATYPE_NULL", "lib/capi/args.go",
			"if n == 0 && h == l.abi.null[kindDatatype] {", "if false {", []test{calls}},
		{"C library: MPI_Parrived is true for MPI_REQUEST_NULL", "lib/capi/partitioned.go",
			"a.handle(0, kindRequest) == a.lib.abi.null[kindRequest]", "false", []test{calls}},
		{"C library: large counts occur only in large forms", "lib/capi/contents.go",
			"t.IsLarge() && !a.largeCounts", "false",
			[]test{calls}},
		{"C library: a duplicate was not made with large counts", "mpi/datatype/construct.go",
			"Contents{Combiner: CombinerDup, Types: []*Type{of}}, false",
			"Contents{Combiner: CombinerDup, Types: []*Type{of}}, of.isLarge", []test{calls}},
		{"C library: a process has one ABI", "lib/capi/environment.go", "if l.abiConflict.Load() {", "if false {",
			[]test{{"its own test", []string{"./lib", "-run", "TestMixedABIs$"}}}},
		{"C library: mpif.h leaves the address of a detached buffer alone", "lib/gen/fortran.go",
			`case n == "buffer_addr":`, `case n == "":`,
			[]test{{"its own test", []string{"./lib/gen", "-run", "TestFortran"}}}},
		{"C library: MPI_BUFFER_AUTOMATIC has no bound", "lib/capi/buffer.go", "n = mpi.AutomaticBuffer", "n = 0",
			[]test{calls}},
		{"C library: the buffer of a communicator precedes the rank's", "mpi/buffered.go",
			"if b.isAttached() {\n\t\t\t\treturn b", "if false {\n\t\t\t\treturn b", []test{calls}},
		{"C library: communicators have the buffer of their session", "lib/capi/group.go",
			"made.Group, made.sessionBuf = g, a.inheritedBuffer", "made.Group = g", []test{calls}},
		{"mpi: a flush waits for the messages before it", "mpi/buffered.go", "b.sends[0].number <= last; b.freeSent()",
			"b.sends[0].number <= last && false; b.freeSent()",
			[]test{{"its own test", []string{"./mpi", "-run", "TestFlush$"}}}},
		{"C library: handlers installed before MPI_Init run on alternate stacks", "lib/signals.go",
			"//         action.sa_flags |= SA_ONSTACK;\n", "",
			[]test{{"a program that loads the library by dlopen", []string{"./lib", "-run", "TestLibraryProcess$"}}}},
		{"C library: conversions of handles are in mpi.h", "lib/gen/c.go",
			"b.WriteString(a.declareConversions(table, prefix))", "_ = prefix", []test{libraryRun}},
		{"Fortran: MPI_Sizeof is in mpi_f08", "lib/gen/f08.go", "\tb.WriteString(interfaces)\n", "\t_ = interfaces\n",
			[]test{libraryRun}},
		{"collective calls: a mismatch that was noticed ends no later call", "mpe/collective/shared.go",
			"state.BeforeFailed != number-1 && s.lastCalls", "s.lastCalls", []test{mismatches}},
		{"collective calls: a mismatch names both calls", "mpe/collective/shared.go",
			"theirs := callWord(description)", "theirs := callWord(0 * description)", []test{mismatches}},
		{"collective calls: two roots of a Bcast are noticed", "mpe/collective/shared.go",
			"case state.BeforeFailed != number-1 && s.lastCalls[(number-1)&1].differs(state.BeforeDigest):", "case false:",
			[]test{mismatches}},
	}...)
}
