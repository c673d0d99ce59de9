package anonymize

import (
	"time"

	"github.com/berth-project/berth/internal/convert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Epoch is the time that the time of the decisions becomes. All times are shifted alike.
var Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// time returns a shifted time. A time that is not known stays so.
func (n *Names) time(t metav1.Time) metav1.Time {
	at := convert.Nanoseconds(&t)
	if at == 0 {
		return metav1.Time{}
	}
	n.earliest = min(n.earliest, at)
	n.latest = max(n.latest, at)
	return metav1.Time{Time: time.Unix(0, at+n.shift).UTC()}
}

// optionalTime is like time, for a time that may be missing.
func (n *Names) optionalTime(t *metav1.Time) *metav1.Time {
	if t == nil {
		return nil
	}
	out := n.time(*t)
	return &out
}

// sealTimes sets by how much times are shifted: whole seconds, because files have no
// fractions of a second. Times that are so far apart that some would be invalid are kept.
func (n *Names) sealTimes() {
	second := int64(time.Second)
	shift := Epoch.UnixNano() - n.now/second*second
	first, last := time.Unix(0, n.earliest+shift).UTC().Year(), time.Unix(0, n.latest+shift).UTC().Year()
	if n.now != 0 && first > 1970 && last < 2200 {
		n.shift = shift
	}
}
