// Package htmlreport writes an analysis of a recording as one HTML page: the
// findings, a ladder diagram of the exchanges, the times of their phases, and
// tables of pairs and messages.
//
// The page is for people who were sent a file: it opens from anywhere, without a
// network and without a server. It must never load anything from outside, never
// let what is in a recording or in a file's name become markup or code, and never
// need an element per message: a recording has hundreds of thousands of them.
package htmlreport
