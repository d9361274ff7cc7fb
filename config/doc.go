// Package config is the daemon's configuration as plain data: the validated contents of one YAML file, with every
// default filled in.
//
// Reading is strict. An unknown key, a duplicate key, an alias or a second document is an error with file, line and key
// path: a key that is silently ignored would make a user search for the fault in the network. All problems of a file
// are reported at once.
//
// The package must never open a socket, start anything, log, or import a package that could: the daemon, zrlctl and the
// importer of upstream's cluster files depend on it. Only DefaultSocket and ApplyEnv use anything outside of the file.
//
// deploy/zrlmpid.reference.yaml shows every key.
package config
