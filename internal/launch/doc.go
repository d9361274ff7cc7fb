// Package launch runs the ranks of a job on this host: it starts a process for each of them, serves them as their
// launcher (package pmi), merges their output by lines, and ends all of them when one fails.
//
// It must never leave a process behind, or report success for a job with a failed rank.
package launch
