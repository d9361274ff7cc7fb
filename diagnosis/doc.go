// Package diagnosis finds why ranks wait: from the states of ranks, of one or several daemons
// and jobs, it makes the graph of which rank waits for which, follows it to the ranks and pairs
// at its ends, and names the cause, the evidence for it, and what to do next.
//
// The files, in the order in which a diagnosis is made: source.go has what was asked, view.go
// joins the states, edges.go makes the graph of them, causes.go is the table of causes with
// what proves each in the states of a pair (pair.go, calls.go), transit.go explains messages
// whose two ranks are known, roots.go follows the graph to the ranks at its ends (peer.go, and
// unknown.go where nothing is known of one), words.go puts it into words.
//
// It is pure: it asks nobody, and has no clock. It never calls a cause certain that another
// one explains as well: package infer lists those that are left.
package diagnosis
