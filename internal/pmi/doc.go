// Package pmi is the Process Management Interface, version 1, between the processes of a parallel job and the launcher
// that started them. A process learns its rank and the size of the job, and all of them exchange keys and values, such
// as their addresses, around a barrier. Client is the side of a process; MPICH's hydra, Slurm's plugins pmi1 and pmi2,
// and Server are launchers. The wire format is text, a line for each command
// (https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/spec_13.html).
//
// It must never trust the length of input from the other side, nor start a process.
package pmi
