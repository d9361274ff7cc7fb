//go:build !linux

package main

import "log"

func main() { log.Fatal("paths: only Linux has io_uring and AF_XDP") }
