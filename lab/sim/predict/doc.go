// Package predict applies the model of package network. It fits the model to measurements made by "zrlbench tune", and
// compares the two. It predicts the time of collective calls for numbers of ranks, and makes a table of algorithms for
// a cluster described in YAML. It opens no files.
package predict
