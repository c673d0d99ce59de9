package model

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// gib writes an amount of memory in GiB, or in MiB where it is small.
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

func count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// Thousands writes a number with commas.
func Thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
