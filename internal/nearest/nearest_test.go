package nearest

import (
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	words := []string{"replicas", "resources", "NodeResourcesFit", "NodeResourcesFitPlus"}
	tests := map[string]string{
		"replica": "replicas", "relpicas": "replicas", "REPLICAS": "replicas", "resource": "resources",
		"NodeResourceFitPlus": "NodeResourcesFitPlus", "zebra": "", "": "",
		strings.Repeat("x", 500): "",
	}
	for word, want := range tests {
		if got, ok := Find(word, words); got != want || ok != (want != "") {
			t.Errorf("%q is nearest to %q, want %q", word, got, want)
		}
	}
	products := []string{"NVIDIA-A100-SXM4-80GB", "NVIDIA-A100-PCIE-40GB", "NVIDIA-L4"}
	for word, want := range map[string]string{"l4": "NVIDIA-L4", "A100": "", "80GB": "NVIDIA-A100-SXM4-80GB", "H100": ""} {
		if got, _ := Find(word, products); got != want {
			t.Errorf("%q is a part of %q, want %q", word, got, want)
		}
	}
	if got, _ := Find("abc", []string{strings.Repeat("abc", 100), "abd"}); got != "abd" {
		t.Errorf("got %q", got)
	}
}

func TestHint(t *testing.T) {
	tests := map[string]struct {
		word  string
		known []string
		want  string
	}{
		"similar word": {"colour", []string{"color", "size"}, `; did you mean "color"?`},
		"short list":   {"xyzzy", []string{"color", "size"}, "; known: color, size"},
		"long list":    {"xyzzy", strings.Split("aaaaaaaa,bbbbbbbb,cccccccc,dddddddd,eeeeeeee,ffffffff,gggggggg,hhhhhhhh,iiiiiiii", ","), ""},
		"no list":      {"xyzzy", nil, ""},
	}
	for name, tt := range tests {
		if got := Hint(tt.word, tt.known); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
