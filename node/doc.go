// Package node builds a local rank from a configuration: the link to each peer (Link), its sockets and its engine. The
// daemon builds all of its ranks, and a program that is itself a rank builds only that rank (Open).
//
// The package must decide nothing about the protocol: the rules for each kind of peer are in packages handshake and
// extended, and the user's options in package config.
package node
