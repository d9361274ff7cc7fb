// Package hangs has tests of hangs on real sockets: each must be explained by its root cause, whichever host is asked.
// Those with a deployed node, real or a model, have one vantage only: no answer there may be certain and wrong, and no
// list without the cause.
package hangs
