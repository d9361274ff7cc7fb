// Package choice chooses the algorithm of a collective call: from a table that was measured (zrlbench tune), or as
// forced by the user.
//
// Every rank chooses separately, and all ranks of a call must choose the same. So a choice depends only on the table
// and on values that are the same on all ranks of a call, and Hash lets ranks check that their tables agree. Choosing
// allocates nothing.
//
// The package must never measure, read the clock, learn from calls, or choose an algorithm that does not support the
// call.
//
// The package reads no files: config/collectives does. The built-in table has the results of "zrlbench tune" for
// oversubscribed hosts (measured.go), and otherwise the choices by the formulas of package coll (formula.go), which
// are evaluated when the table is first needed.
package choice
