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
// The files: choice.go is what is chosen and how it is written, forced.go what is not
// left to the table, table.go the lookup, document.go the file, check.go what is asked
// of it, decide.go how decisions come of medians. default.yaml is the table of those who
// have none: "zrlbench tune --output" has measured the class memory in it, and the class
// network follows from the formulas of package coll.
package choice
