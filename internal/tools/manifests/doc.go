// Package manifests checks the files of deploy/ for other programs: the Kubernetes manifests
// and their overlays, the Dockerfile, and the compose file. Each is read, strictly, with
// the types of the program that it is for, so that a misspelt field is an error. It has
// tests only, and a module of its own for all that they need.
package manifests
