// Package life has tests in which processes end, stop and come back: zrlmpid and attached
// programs, between and within messages. It must not be imported.
package life
