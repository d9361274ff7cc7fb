// Package scaling measures how much faster a program becomes with more processors, and
// prints that in the form of the tables of Pires, Véstias and Neto, An Implementation of
// MPI on FPGA for Distributed Memory Multiprocessing: times, speed-ups and efficiencies
// by the size of the problem and the number of processors. It must never print a time
// that was not measured.
package scaling
