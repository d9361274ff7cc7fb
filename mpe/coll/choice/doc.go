// Package choice says which algorithm carries out a collective call: by a table that was
// measured (zrlbench tune), or as somebody forces it.
//
// A choice is made on every rank apart, and all ranks of a call must come to the same.
// So it depends only on the table and on what the ranks of a call have in common, and
// Hash lets them find out whether their tables agree. Choosing allocates nothing.
//
// The package must never measure, ask the clock, learn from the calls that it chooses
// for, or choose what cannot carry out the call.
//
// The package reads no file: config/collectives does. The built-in table has what "zrlbench
// tune" has measured between ranks that share memory (measured.go), and, for networks, what
// the formulas of package coll say (formula.go), evaluated when it is first needed.
package choice
