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
	if len(table.pages) != 1 {
		t.Errorf("%d pages for %d pointers, want 1", len(table.pages), table.Len())
	}
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
}
