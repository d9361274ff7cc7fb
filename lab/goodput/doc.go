// Package goodput measures the goodput of zrlmpid over long and lossy paths, compared with TCP CUBIC through the same
// emulated path in the same run.
//
// Each measurement has a separate path (package path): two network namespaces with nothing else in them. The sender of
// a flow is a process in one namespace, and its receiver a process in the other. Both are the running program, which
// passes the arguments after FlowCommand to RunFlow. In a round, all sides are measured in turn with the same seed, so
// packets with the same numbers are lost. Every byte is verified.
//
// It requires Linux, root and the program ip. No test fails because of a measured value.
package goodput
