package scarceresourceavoidance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Quantity is an amount as it is written in a configuration: 8, "500m", "64Gi". A number
// and a text are equivalent.
type Quantity string

// UnmarshalJSON accepts a text or a number.
func (q *Quantity) UnmarshalJSON(data []byte) error {
	data = bytes.TrimSpace(data)
	if len(data) > 0 && data[0] == '"' {
		var s string
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
		*q = Quantity(s)
		return nil
	}
	var n json.Number
	if err := json.Unmarshal(data, &n); err != nil {
		return fmt.Errorf("%s is not an amount; write one such as 8 or 64Gi", data)
	}
	*q = Quantity(n)
	return nil
}

// cores parses "8", "1.5" or "500m" as thousandths of a core. An empty text is 0.
func (q Quantity) cores() (int64, error) {
	text := string(q)
	if text == "" {
		return 0, nil
	}
	fail := fmt.Errorf("%q is not a number of cores; write one such as 8, 1.5 or 500m", text)
	if milli, ok := strings.CutSuffix(text, "m"); ok {
		return whole(milli, 1, fail)
	}
	integer, fraction, ok := strings.Cut(text, ".")
	if !ok {
		return whole(text, 1000, fail)
	}
	if len(fraction) < 1 || len(fraction) > 3 {
		return 0, fail
	}
	a, err := whole(integer, 1000, fail)
	if err != nil {
		return 0, err
	}
	b, err := whole((fraction + "00")[:3], 1, fail)
	if err != nil || a > math.MaxInt64-b {
		return 0, fail
	}
	return a + b, nil
}

var units = []struct {
	suffix string
	bytes  int64
}{
	{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"Ti", 1 << 40}, {"Pi", 1 << 50},
	{"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15},
}

// bytes parses "64Gi", "512M" or a plain number of bytes. An empty text is 0.
func (q Quantity) bytes() (int64, error) {
	text := string(q)
	if text == "" {
		return 0, nil
	}
	fail := fmt.Errorf("%q is not an amount of memory; write one such as 64Gi", text)
	for _, u := range units {
		if number, ok := strings.CutSuffix(text, u.suffix); ok {
			return whole(number, u.bytes, fail)
		}
	}
	return whole(text, 1, fail)
}

// whole parses a text of digits only and multiplies it by the unit.
func whole(digits string, unit int64, fail error) (int64, error) {
	v, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || int64(v) > math.MaxInt64/unit {
		return 0, fail
	}
	return int64(v) * unit, nil
}
