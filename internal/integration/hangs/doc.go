// Package hangs tests the diagnosis of hangs on real sockets. Whichever host is asked, the diagnosis must name the root
// cause. In hangs with a deployed node, real or a model, only the host can be asked: an answer that is certain must be
// right, and a list must contain the cause.
package hangs
