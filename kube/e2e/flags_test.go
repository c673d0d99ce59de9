package e2e

import "flag"

// The counts of make test are small; make e2e-soak sets larger ones.
var kills = flag.Int("kills", 10, "how often TestKilled kills the scheduler")
