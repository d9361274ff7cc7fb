// Package sharedmem creates memory to be handed to another process, and maps memory received from another process.
//
// It must never map memory that the other process can shrink: an access beyond its end would crash this process.
package sharedmem
