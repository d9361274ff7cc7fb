// Package diagnosis finds why ranks wait: from the states of ranks, of one or several daemons
// and jobs, it makes the graph of which rank waits for which, follows it to the ranks and pairs
// at its ends, and names the cause, the evidence for it, and what to do next.
//
// The files, in the order in which a diagnosis is made: source.go has what was asked, view.go
// joins the states, edges.go makes the graph of them, causes.go is the table of causes with
// what shows each in the state of a pair (pair.go, calls.go, peer.go), roots.go follows the
// graph, words.go puts it into words.
//
// It is pure: it asks nobody, and has no clock. It never guesses from a state that is not
// known: a rank that was not asked is named as such.
package diagnosis
