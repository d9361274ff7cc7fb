// Package node puts one local rank together from a configuration: how it talks to
// each peer (Link), its sockets and its engine. The daemon does so for all of its
// ranks, and a program that is a rank itself for its own (Open).
//
// It must decide nothing about the protocol: what is known of a kind of peer is in
// packages handshake and extended, and what a user may say in package config.
package node
