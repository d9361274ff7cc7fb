// Package extended is the state machine between one local rank and one peer that
// speak the extended profile.
package extended
