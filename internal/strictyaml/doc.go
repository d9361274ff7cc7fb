// Package strictyaml reads the files that people write for zrlmpid: YAML, strictly. An
// unknown key, a duplicate key, an alias or a second document is an error that names
// file, line and key path, because a key that is silently ignored sends a user looking
// for the fault elsewhere. All problems of a file are reported at once.
//
// It must never know what a file is about, let a file decide how much memory it takes
// beyond MaxFileSize, or open one.
package strictyaml
