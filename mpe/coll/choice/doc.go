// Package choice chooses the algorithm of a collective call: from a table that was measured (zrlbench tune), or as
// forced by the user.
//
// Every rank chooses by itself, but all ranks of a call must make the same choice. Therefore a choice depends only on
// the table and on values that are equal on all ranks of a call, and ranks can compare their tables by Hash. Choosing
// does not allocate.
//
// The package must never measure, read the clock, learn from calls, or choose an algorithm that does not support the
// call.
//
// Package config/collectives reads table files. The built-in table consists of results of "zrlbench tune" for
// oversubscribed hosts (measured.go), and otherwise of choices by the formulas of package coll (formula.go), which are
// evaluated on first use of the table.
package choice
