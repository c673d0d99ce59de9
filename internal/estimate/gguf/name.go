package gguf

import (
	"strconv"
	"strings"

	parser "github.com/gpustack/gguf-parser-go"
)

// tensorPlace is the part of a model to which a tensor belongs, according to its name.
type tensorPlace int

const (
	elsewhere   tensorPlace = iota
	inLayer                 // blk.N.…
	inStack                 // a layer of an encoder or decoder, which is not divided layer by layer
	asEmbedding             // token_embd
	asHead                  // output
)

func placeOf(name string) tensorPlace {
	switch {
	case strings.HasPrefix(name, "blk."):
		if _, ok := layerOf(name); ok {
			return inLayer
		}
	case strings.HasPrefix(name, "enc.blk."), strings.HasPrefix(name, "dec.blk."),
		strings.HasPrefix(name, "v.blk."), strings.HasPrefix(name, "a.blk."):
		return inStack
	case strings.HasPrefix(name, "token_embd."):
		return asEmbedding
	case strings.HasPrefix(name, "output."):
		return asHead
	}
	return elsewhere
}

// layerOf returns the number of the layer to which a tensor belongs.
func layerOf(name string) (int, bool) {
	rest, ok := strings.CutPrefix(name, "blk.")
	if !ok {
		return 0, false
	}
	digits, _, ok := strings.Cut(rest, ".")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 16)
	return int(n), err == nil
}

// fileTypes maps general.file_type to the name of the quantisation; "": the weights are
// plain numbers.
var fileTypes = map[uint64]string{
	0: "", 1: "", 32: "",
	2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1",
	10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M",
	16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 21: "Q2_K_S",
	19: "IQ2_XXS", 20: "IQ2_XS", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL",
	26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S", 29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M",
	36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4",
}

// quantised returns the name of the quantisation: that of the file's metadata, or else
// the type that most bytes have.
func (f *file) quantised() string {
	if n, ok := f.values["general.file_type"].wholeNumber(); ok {
		if name, known := fileTypes[n]; known {
			return name
		}
	}
	bytes := map[parser.GGMLType]uint64{}
	most := f.tensors[0].kind
	for _, t := range f.tensors {
		bytes[t.kind] += t.bytes
		if b := bytes[t.kind]; b > bytes[most] || b == bytes[most] && t.kind < most {
			most = t.kind
		}
	}
	if !most.IsQuantized() {
		return ""
	}
	return most.String()
}
