// Package goodput measures the goodput of zrlmpid over long and lossy paths. It compares it with TCP CUBIC, measured
// over the same emulated path in the same run.
//
// Each measurement has a separate path (package path), which connects two network namespaces with nothing else in them.
// The sender of a flow is a process in one namespace, and the receiver a process in the other. Both processes are
// copies of the running program, which must pass the arguments after FlowCommand to RunFlow. In a round, all sides are
// measured in turn with the same seed, so that packets with the same numbers are lost. Every byte is verified.
//
// The package requires Linux, root and the program ip. No test fails because of a measured value.
package goodput
