// Package manifests checks the files in deploy/ that other programs read: the Helm chart and the manifests rendered
// from it, and the compose file. It parses them strictly, with the types of the programs that read
// them, so that a misspelt field is an error. It also packages the chart. It is in this module because of its
// dependencies.
package manifests
