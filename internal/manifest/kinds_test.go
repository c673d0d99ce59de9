package manifest

import (
	"strings"
	"testing"
)

// What a message says is read must not fall behind what is.
func TestWhatIsReadNamesEveryKind(t *testing.T) {
	for _, k := range kinds {
		for _, name := range kindNames(k.version) {
			if !strings.Contains(whatIsRead, name) {
				t.Errorf("%s of %s is read, and %q does not say so", name, k.version, whatIsRead)
			}
		}
	}
}
