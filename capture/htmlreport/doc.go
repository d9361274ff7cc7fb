// Package htmlreport writes an analysis of a recording as one HTML page: the findings, a ladder diagram of the
// exchanges, the times of their phases, and tables of pairs and messages.
//
// The page is one self-contained file, which works without a network and without a server. It must never load anything
// from elsewhere, and never interpret text from a recording or a file name as markup or code. It must not need an
// element for each message, because a recording may have hundreds of thousands of messages.
package htmlreport
