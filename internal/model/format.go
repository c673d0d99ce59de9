package model

import (
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// gib formats an amount of memory in GiB, or in MiB if it is below 1 GiB.
func gib(b cluster.Bytes) string { return gibDecimals(b, 2) }

// gibDecimals is gib with at most this many decimals of a GiB.
func gibDecimals(b cluster.Bytes, decimals int) string {
	if b < 1<<30 {
		return strconv.FormatInt(int64(b)>>20, 10) + " MiB"
	}
	s := strconv.FormatFloat(float64(b)/(1<<30), 'f', decimals, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".") + " GiB"
}

// gibPair formats two amounts of memory with so many decimals that different amounts have
// different texts.
func gibPair(a, b cluster.Bytes) (string, string) {
	for decimals := 2; decimals < 9; decimals++ {
		if x, y := gibDecimals(a, decimals), gibDecimals(b, decimals); x != y || a == b {
			return x, y
		}
	}
	return strconv.FormatInt(int64(a), 10) + " bytes", strconv.FormatInt(int64(b), 10) + " bytes"
}

func percent(m cluster.Milli) string {
	return strconv.FormatFloat(float64(m)/10, 'f', -1, 64) + " %"
}
