package model

import (
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// gib formats an amount of memory in GiB, or in MiB if it is below 1 GiB.
func gib(b cluster.Bytes) string {
	if b < 1<<30 {
		return strconv.FormatInt(int64(b)>>20, 10) + " MiB"
	}
	s := strconv.FormatFloat(float64(b)/(1<<30), 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".") + " GiB"
}

func percent(m cluster.Milli) string {
	return strconv.FormatFloat(float64(m)/10, 'f', -1, 64) + " %"
}
