package watch

import (
	"testing"

	"k8s.io/client-go/kubernetes/scheme"
)

// TestIsTyped checks that exactly one kind belongs to each resource that is typed.
func TestIsTyped(t *testing.T) {
	count := 0
	for kind := range scheme.Scheme.AllKnownTypes() {
		if IsTyped(kind) {
			count++
		}
	}
	if want := len(required) + len(newer); count != want {
		t.Errorf("%d kinds are typed, and %d resources", count, want)
	}
}
