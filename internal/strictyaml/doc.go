// Package strictyaml reads YAML files that people write for zrlmpid, strictly. An unknown key, a duplicate key, an
// alias or a second document is an error with file, line and key path, because a key that is silently ignored sends a
// user looking for the fault elsewhere. All problems of a file are reported at once.
//
// It must never know the meaning of a file, let a file use more memory than MaxFileSize allows, or open one.
package strictyaml
