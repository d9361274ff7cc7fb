// Package node builds a local rank from a configuration: the link to each peer (Link), its
// sockets and its engine. The daemon builds all of its ranks, and a program that is a rank
// itself its own (Open).
//
// It must decide nothing about the protocol: the rules of each kind of peer are in packages
// handshake and extended, and the options of a user in package config.
package node
