// Package diagnosis determines why ranks wait. From the states of ranks, of one or several daemons and jobs, it builds
// the graph of which rank waits for which, follows it to the ranks and pairs at its ends, and names the cause, the
// evidence for it, and what to do next.
//
// The files, in the order in which a diagnosis is made: source.go defines the input and the result, view.go joins the
// states, edges.go builds the graph from them, causes.go is the table of causes with the functions that prove them from
// the states of a pair (pair.go, calls.go), transit.go explains waits for messages if the states of both ranks are
// known, roots.go follows the graph to the ranks at its ends (peer.go, and unknown.go for ranks whose state is
// unknown), text.go formats the result as text.
//
// The package is pure: it queries no process and reads no clock. It never reports a cause as certain if another cause
// would explain the wait as well; package infer lists the causes that remain.
package diagnosis
