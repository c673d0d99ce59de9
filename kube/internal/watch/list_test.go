package watch

import (
	"testing"

	"k8s.io/client-go/kubernetes/scheme"
)

// TestIsRequired checks that exactly one kind belongs to each required resource.
func TestIsRequired(t *testing.T) {
	count := 0
	for kind := range scheme.Scheme.AllKnownTypes() {
		if IsRequired(kind) {
			count++
		}
	}
	if count != len(required) {
		t.Errorf("%d kinds are required, and %d resources", count, len(required))
	}
}
