package manifest

import (
	"strings"
	"testing"
)

// The message about what is read names every kind.
func TestWhatIsReadNamesEveryKind(t *testing.T) {
	for _, k := range kinds {
		for _, name := range kindNames(k.version) {
			if !strings.Contains(whatIsRead, name) {
				t.Errorf("%s of %s is read, and %q does not say so", name, k.version, whatIsRead)
			}
		}
	}
}
