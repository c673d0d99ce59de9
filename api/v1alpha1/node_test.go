package v1alpha1

import (
	"encoding/json"
	"testing"
)

func TestDeviceSetsUnmarshalJSON(t *testing.T) {
	tests := map[string]struct {
		text string
		want int // count of the only entry; 0: an error
	}{
		"one":       {`{"devices": {"product": "x", "count": 2}}`, 2},
		"a list":    {`{"devices": [{"product": "x", "count": 3}]}`, 3},
		"bad entry": {`{"devices": {"count": "x"}}`, 0},
		"text":      {`{"devices": "x"}`, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var spec NodeSpec
			err := json.Unmarshal([]byte(tc.text), &spec)
			if (err != nil) != (tc.want == 0) {
				t.Fatal(err)
			}
			if err == nil && (len(spec.Devices) != 1 || spec.Devices[0].Count != tc.want) {
				t.Errorf("%+v", spec.Devices)
			}
		})
	}
}
