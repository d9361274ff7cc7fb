// Package coll is the collectives of MPI as pure schedules: for one rank of one
// call, the steps that it takes, on which bytes, and which of them have to be done
// before which others. One executor runs them all on point-to-point operations, and
// package collcheck proves them without running them.
//
// It is pure code. It must never send or receive, start a goroutine, read a clock,
// use randomness, keep anything between calls, or know what a peer is. The
// schedules of the ranks of a call are made apart from each other, so whatever
// decides the form of a schedule must be the same on all ranks: the fields of Call
// say which these are. What a call allocates does not grow with the length of its
// buffers: long schedules are made as they are read, a round at a time.
//
// # How a schedule is run
//
// Steps are numbered from 1 in the order in which Next gives them. A step may begin
// when the steps that it names in After are complete. The executor holds a window
// of steps, which begins with the oldest that is not complete and has room for at
// least Schedule.Window of them; any number in it may be under way. In this order,
// two things are promised to peers:
//
//   - the sends to one peer begin in the order of their numbers, and so do the
//     receives from one peer. So messages match by order alone, and tags are not
//     needed, as cloudfpga peers have none;
//   - of the steps in the window all that can begin do, in the order of their numbers,
//     before it is noted that one has come to its end. So a receive that waits for
//     nothing is posted before a message that waits for another.
//
// A send is complete when its bytes may be overwritten, a receive when they are
// there. Sends may wait for the receive to be posted: no schedule needs a message
// to be kept by anyone. Schedules with a Window of 1 can be carried out by a rank
// that does one step at a time and blocks in each. All that upstream's compiler
// makes for cloudfpga ranks are of this kind ("flat", and the tree of upstream.go).
//
// # Costs
//
// Every algorithm that may be chosen by its cost has that as code, in the usual model: a
// message of n bytes takes α + nβ, a reduction of n bytes nγ, a rank sends one message and
// receives one at the same time. Package collcheck counts the same in the schedules, and
// the tests compare.
//
// The files: step.go is what a step is, schedule.go the iteration, call.go what is
// asked for, algorithm.go the list of algorithms and the choice among them, cost.go
// the model; fold.go and tree.go are what several algorithms share; order.go
// and pipeline.go the transmission order and the number of segments;
// progress.go is how far a rank has come, for executors. Every
// other file is one algorithm, or two that mirror each other.
package coll
