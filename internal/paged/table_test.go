package paged

import "testing"

func TestTable(t *testing.T) {
	var table Table[int]
	values := make([]int, 3*pageSize+1)
	for i := range values {
		table.Grow(i + 1)
		if table.Len() != i+1 || table.At(i) != nil {
			t.Fatalf("after growing to %d: length %d, last %v", i+1, table.Len(), table.At(i))
		}
		table.Set(i, &values[i])
	}
	table.Grow(5)
	table.Append(&values[7])
	table.RemoveLast()
	for i := range values {
		if table.At(i) != &values[i] {
			t.Fatalf("index %d has another pointer", i)
		}
	}
	if table.Len() != len(values) {
		t.Errorf("length %d after growing to less, want %d", table.Len(), len(values))
	}
	for table.Len() > pageSize-1 {
		table.RemoveLast()
	}
	table.Grow(pageSize + 1)
	if a, b := table.At(pageSize-1), table.At(pageSize); a != nil || b != nil {
		t.Errorf("removed pointers are there again: %v, %v", a, b)
	}
	table.RemoveLast()
	table.RemoveLast()
	table.Append(&values[3])
	at := 0
	for p := range table.All() {
		if want := &values[at]; p != want && (at != pageSize-1 || p != &values[3]) {
			t.Errorf("index %d has another pointer", at)
		}
		at++
	}
	if at != pageSize {
		t.Errorf("All returns %d pointers, want %d", at, pageSize)
	}
	if n := testing.AllocsPerRun(100, func() { table.Append(nil); table.RemoveLast() }); n > 0 {
		t.Errorf("a pointer that is added at the end of a page and removed needs memory %v times", n)
	}
}

// TestSmallTable checks that a table with one pointer has no page of full size.
func TestSmallTable(t *testing.T) {
	var table Table[int]
	table.Append(nil)
	if c := cap(table.pages[0]); c > 8 {
		t.Errorf("there is memory for %d pointers, and there is one", c)
	}
}
