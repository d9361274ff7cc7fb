// Package nft follows a packet through the rules of nftables, as "nft -j list ruleset" prints them (libnftables-json(5)),
// and says whether they drop it. Packets are taken for the first of a connection. What the package does not know makes the
// result depend on that; it is never guessed.
package nft
