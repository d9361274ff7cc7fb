// Package goodput measures how many bytes a second zrlmpid moves over long and lossy
// paths, beside TCP CUBIC through the same emulated path in the same run.
//
// Each measurement has a path of its own (package path): two network namespaces with
// nothing else in them. The sender of a flow is a process in one, and its receiver in the
// other; both are the running program, which passes the arguments after FlowCommand to
// RunFlow. In a round, all sides are measured in turn with the same seed, so that the
// packets with the same numbers are lost. Every byte is verified.
//
// It needs Linux, root and the program ip. No test fails because of a figure.
package goodput
