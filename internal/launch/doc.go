// Package launch runs the ranks of a job on this host: it starts a process for each of them,
// serves them as their launcher (package pmi), merges what they print by lines, and ends all of
// them when one fails.
//
// It must never leave a process behind, or take a job for a success of which a rank has failed.
package launch
