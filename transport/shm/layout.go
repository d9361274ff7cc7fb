package shm

import "github.com/zrlmpi/zrlmpid/protocol"

// Words in the state of a slot. If there is a word for each half of the slot, the second half's word follows the first
// half's.
const (
	sequenceWord = iota
	epochWord
	failedWord
	_
	digestWord
	_
	descriptionWord
	_
	stateWords
)

// Constant is a constant of the layout of the shared memory, with its name in C.
type Constant struct {
	Name  string
	Value uint64
}

// LayoutConstants returns the constants that C code needs to use rings and shared buffers.
func LayoutConstants() []Constant {
	return []Constant{
		{"ALIGN", recordAlign}, {"WORD", wordLen}, {"PADDING", paddingLength}, {"PREPARE", prepareLen},
		{"SHORT", shortBit}, {"PUBLISH_PARTS", publishParts}, {"LONGEST", protocol.ShortHeaderLen + MaxPayload},
		{"SEQUENCE_WORD", sequenceWord}, {"EPOCH_WORD", epochWord}, {"FAILED_WORD", failedWord},
		{"DIGEST_WORD", digestWord}, {"DESCRIPTION_WORD", descriptionWord},
	}
}
