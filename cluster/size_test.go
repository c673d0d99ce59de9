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

// TestSizeOfNode checks that a node and its list of eight devices stay in the size classes of 416
// and 1280 bytes. Of these, 8 bytes are not for the devices.
func TestSizeOfNode(t *testing.T) {
	if size := unsafe.Sizeof(Node{}); size > 416 {
		t.Errorf("a node takes %d bytes; want at most 416", size)
	}
	if size := 8 * unsafe.Sizeof(Device{}); size > 1280-8 {
		t.Errorf("eight devices take %d bytes; want at most %d", size, 1280-8)
	}
}
