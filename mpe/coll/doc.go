// Package coll describes the collectives of MPI as pure schedules: for one rank of one call, its steps, the bytes
// that they access, and their dependencies. One executor runs all schedules on point-to-point operations, and package
// collcheck proves them without running them.
//
// The package never sends or receives, starts a goroutine, reads a clock, uses randomness, keeps state between calls,
// or knows about peers. Each rank builds its own schedule of a call, so everything that determines the form of the
// schedule must be equal on all ranks; see the fields of Call. The memory of a schedule does not grow with the length
// of the buffers, because long schedules are built round by round while they are read.
//
// # Running a schedule
//
// Steps are numbered from 1 in the order of Next. A step may begin when the steps listed in its After are complete. The
// executor considers a window of at least Schedule.Window steps, beginning with the oldest incomplete step; any number
// of the steps in the window may be in progress. The executor keeps two promises to peers:
//
//   - The sends to one peer begin in the order of their numbers, and so do the receives from one peer. Messages
//     therefore match by order alone, without tags, which cloudfpga peers do not support.
//   - All steps in the window that can begin do begin, in the order of their numbers, before any step is recorded as
//     complete. A receive without dependencies is therefore posted before a message that depends on another message.
//
// A send is complete when its bytes may be overwritten, a receive when its bytes are stored. No schedule relies on
// buffering: a send may wait until its receive is posted. A rank that executes one blocking step at a time can run any
// schedule with a Window of 1, such as all schedules of upstream's compiler for cloudfpga ranks ("flat", and the tree
// of upstream.go).
//
// # Costs
//
// Every algorithm that may be chosen by cost provides a cost function in the usual model: a message of n bytes takes α
// + nβ, a reduction of n bytes takes nγ, and a rank can send one message and receive another at the same time. Tests
// compare these functions with the costs that package collcheck counts in the schedules.
//
// The files: step.go defines steps, schedule.go the iteration, call.go calls, algorithm.go the list of algorithms and
// the choice among them, cost.go the model; fold.go and tree.go are shared by several algorithms; order.go and
// pipeline.go compute the transmission order and the number of segments; progress.go tracks progress, for executors.
// Every other file contains one algorithm, or related ones.
package coll
