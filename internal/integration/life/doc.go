// Package life tests processes that exit, stop and restart: zrlmpid and attached programs, between messages and in the
// middle of one. It must not be imported.
package life
