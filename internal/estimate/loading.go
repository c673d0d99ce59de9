package estimate

import "fmt"

// LoadingError is an error about how weights are loaded. Field is dtype or quantization.
type LoadingError struct{ Field, Message string }

func (e *LoadingError) Error() string { return e.Message }

// WeightBits returns the size of a number of the weights if a server loads plain numbers as
// dtype, and quantises them; 0: neither is set.
func WeightBits(dtype, quantization string) (int, *LoadingError) {
	bits := 0
	switch dtype {
	case "", "auto":
	case "bfloat16", "float16", "half":
		bits = 16
	case "float32", "float":
		bits = 32
	default:
		return 0, &LoadingError{"dtype", fmt.Sprintf("want auto, bfloat16, float16 or float32, have %q", dtype)}
	}
	if bits == 32 && quantization != "" {
		return 0, &LoadingError{"quantization", "numbers of 32 bits are not quantised; leave dtype or quantization out"}
	}
	switch quantization {
	case "":
	case "fp8", "int8":
		bits = 8
	case "bitsandbytes":
		bits = 4
	default:
		return 0, &LoadingError{"quantization", fmt.Sprintf("want fp8, int8 or bitsandbytes, have %q; weights that are quantised in the files need no setting", quantization)}
	}
	return bits, nil
}
