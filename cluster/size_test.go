package cluster

import (
	"testing"
	"unsafe"
)

// TestSizeOfPlainJob checks that a job with one task, the most frequent kind of job, stays one
// object of the size class of 512 bytes. Larger objects with pointers need more than their size.
func TestSizeOfPlainJob(t *testing.T) {
	if size := unsafe.Sizeof(plainJob{}); size > 512 {
		t.Errorf("a job with one task takes %d bytes; want at most 512", size)
	}
}
