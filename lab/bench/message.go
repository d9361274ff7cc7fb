package bench

import "fmt"

// wordLen is the size in bytes of an element of a message, an int32.
const wordLen = 4

// wordsOf returns the number of words in n bytes.
func wordsOf(n int) (int, error) {
	if n < wordLen || n%wordLen != 0 {
		return 0, fmt.Errorf("%d bytes are not a number of words", n)
	}
	return n / wordLen, nil
}

// pattern returns the word at the given index in the messages of a sender.
func pattern(word, sender int) int32 { return int32(uint32(word)*2654435761 + uint32(sender)) }

// stampWord returns the word that a sender writes at the start and at the end of its message in a round. In the answer
// to that message, both words are the one's complement.
func stampWord(round, sender int) int32 {
	if sender == 0 {
		return int32(round)
	}
	return ^int32(round)
}

func fill(words []int32, sender int) {
	for i := range words {
		words[i] = pattern(i, sender)
	}
}

func writeStamp(words []int32, number int32) { words[0], words[len(words)-1] = number, number }

// verify checks the words of a received message: either all of them, or only the first and the last one.
func verify(words []int32, number int32, sender int, all bool) error {
	last := len(words) - 1
	if err := expectWord(words, 0, number); err != nil {
		return err
	}
	if err := expectWord(words, last, number); err != nil {
		return err
	}
	for i := 1; all && i < last; i++ {
		if err := expectWord(words, i, pattern(i, sender)); err != nil {
			return err
		}
	}
	return nil
}

func expectWord(words []int32, i int, want int32) error {
	if words[i] != want {
		return fmt.Errorf("word %d is %d instead of %d", i, words[i], want)
	}
	return nil
}
