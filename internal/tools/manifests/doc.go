// Package manifests checks the files in deploy/ that other programs read: the Kubernetes manifests and their overlays,
// the Dockerfile, and the compose file. Each is parsed strictly with the types of its program, so a misspelt field is
// an error. It contains only tests, and is a separate module because of their dependencies.
package manifests
