// Package config is the daemon's configuration as plain data: what the one YAML
// file says, checked, with every default filled in.
//
// Reading is strict. An unknown key, a duplicate key, an alias or a second
// document is an error that names file, line and key path, because a key that
// is silently ignored sends a user looking for the fault in the network. All
// problems of a file are reported at once.
//
// The package must never open a socket, start anything, log, or import what could:
// the daemon, zrlctl and the importer of upstream's cluster files all stand on it. It
// looks outside the file in two places only, both named: DefaultSocket and ApplyEnv.
//
// deploy/zrlmpid.reference.yaml shows every key.
package config
