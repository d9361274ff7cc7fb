package protocol

// ExtHeaderLen is the length in bytes of a header of the extended profile.
const ExtHeaderLen = 72
