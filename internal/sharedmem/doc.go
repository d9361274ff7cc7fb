// Package sharedmem makes memory that is handed to another process, and maps what another
// process has handed over.
//
// It must never map memory that the other process can make shorter: an access behind its end
// would end this process.
package sharedmem
